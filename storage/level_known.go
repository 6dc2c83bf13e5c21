//go:build !iop_next_level

package storage

import "iop/fsm"

// levelMax is the newest feature level that this program knows. The tag iop_next_level builds a program of a version to
// come, for tests of rolling upgrades: level_next.go.
const levelMax = fsm.LevelMax

// levelOf is the level that a command needs to be proposed.
func levelOf(c fsm.Command) uint32 { return fsm.LevelOf(c) }

// appendNext and readNext know the commands of a version to come; this one knows none.
func appendNext(b []byte, _ fsm.Command) ([]byte, bool) { return b, false }
func readNext(int) fsm.Command                          { return nil }

// proposeNext is what a version to come proposes by itself.
func (*group) proposeNext() {}
