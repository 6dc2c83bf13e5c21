//go:build !unix

package cli

// owned refuses nothing here: the directory for temporary files is each user's own.
func owned(string) error { return nil }
