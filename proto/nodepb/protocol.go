//go:build !iop_next_protocol

package nodepb

// Protocol versions that this program speaks. A node says its range when it registers, and an edge refuses one with which
// it has none in common. Frames and fields that are only added need no new version: unknown ones are passed over.
const (
	ProtocolMin = 1
	ProtocolMax = 1
)
