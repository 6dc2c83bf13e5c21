package configs

import (
	"crypto/sha256"
	"encoding/hex"
)

// HashToken gives what token_hash_sha256 holds for a token: its SHA-256 in lower-case hex.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
