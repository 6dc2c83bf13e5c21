package configs

import "regexp"

const rawSecretCure = "never write a secret here: for tokens give token_hash_sha256 ('iopctl tokens hash'), for backend keys api_key_env"

// secretShape is how well-known tokens look: a vendor's prefix and a long random rest, or an authorization header.
var secretShape = regexp.MustCompile(`(?i)(^|[=:\s])(bearer\s+\S{8,}|basic\s+[a-z0-9+/=]{12,}|(sk|pk|rk|hf|iop|gsk|xai|ghp|gho|github_pat|glpat|xox[abp])[-_][a-z0-9_-]{20,}|akia[0-9a-z]{16}|eyj[a-z0-9_-]{10,}\.[a-z0-9_-]{10,})`)

func looksSecret(text string) bool { return secretShape.MatchString(text) }

// secretKeys are names that people give to raw secrets. They are no keys of the cluster part, whatever the value.
var secretKeys = []string{
	"token", "raw_token", "api_key", "apikey", "api_token", "auth_token", "access_token", "secret", "password", "authorization", "bearer", "key", "private_key",
}
