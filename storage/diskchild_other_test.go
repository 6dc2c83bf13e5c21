//go:build !linux

package storage

// diskChild runs the part of a test that another process watches; only on Linux.
func diskChild() bool { return false }
