//go:build iop_next_protocol

package nodepb

// The range of a program to come, which speaks no version of today: what tests of version skew are built with.
const (
	ProtocolMin = 2
	ProtocolMax = 2
)
