package refresh

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"

	"iop/configs"
)

// hashKey is the key of a token's hash, which is shown as a fingerprint wherever it stands.
const hashKey = "token_hash_sha256"

// show gives a value as JSON, secrets as fingerprints; nil of what is not there.
func (d *differ) show(v reflect.Value) json.RawMessage {
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	x := v.Interface()
	if d.steps[len(d.steps)-1].key == hashKey {
		x = hashFingerprint(v.String())
	}
	switch y := x.(type) {
	case configs.Secret:
		x = fingerprint(y)
	case configs.CatalogNode:
		y.TokenHashSHA256 = hashFingerprint(y.TokenHashSHA256)
		x = y
	case configs.PrincipalToken:
		y.TokenHashSHA256 = hashFingerprint(y.TokenHashSHA256)
		x = y
	}
	text, err := json.Marshal(x)
	if err != nil {
		panic(fmt.Sprintf("refresh: encode a value of the configuration: %v", err)) // it was decoded from text
	}
	return text
}

// fingerprintLen is how many hex digits of a hash tell two secrets apart, and nothing else.
const fingerprintLen = 8

func fingerprint(s configs.Secret) string {
	if s == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(s.Reveal()))
	return hashFingerprint(hex.EncodeToString(sum[:]))
}

func hashFingerprint(hash string) string {
	if hash == "" {
		return ""
	}
	return "sha256:" + hash[:min(len(hash), fingerprintLen)] + "…"
}
