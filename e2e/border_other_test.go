//go:build !linux

package e2e

// borderCommand is of Linux.
const borderCommand = "become-a-program-with-a-disk"

func playBorder(string, []string) int { return 1 }
