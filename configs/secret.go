package configs

import "log/slog"

// Secret is a value that is never printed: every way of formatting it gives the same placeholder. Reveal gives the value.
type Secret string

const hidden = "[hidden]"

// Reveal gives the value, for the one place that sends or compares it.
func (s Secret) Reveal() string { return string(s) }

// String gives a placeholder, or nothing for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString gives the placeholder for %#v.
func (s Secret) GoString() string { return `"` + s.String() + `"` }

// MarshalText gives the placeholder to encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue gives the placeholder to slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
