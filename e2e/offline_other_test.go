//go:build !linux

package e2e

import "testing"

// offline is of Linux: the test runs in place, with the network.
func offline(*testing.T) bool { return false }
