package storage

import (
	"fmt"
	"slices"
)

// basesMax is how many snapshots older than the newest three are kept as long as the log reaches back to them: from one
// of them and the log behind it, every state since can be told (past.go).
const basesMax = 8

// surplus returns those of the snapshots (the newest first) that are not needed: neither among the newest three, nor a
// base. Of too many bases the one between the closest neighbours goes first, so that they stand about evenly. first is
// where the log begins.
func surplus(names []string, first uint64) []string {
	if len(names) <= snapshotsKept {
		return nil
	}
	var out []string
	type at struct {
		name  string
		index uint64
	}
	bases := []at{}
	for _, name := range names[snapshotsKept-1:] { // the last of the three is a neighbour
		index, ok := snapshotIndex(name)
		if len(bases) > 0 && (!ok || index+1 < first) {
			out = append(out, name)
			continue
		}
		bases = append(bases, at{name, index})
	}
	for len(bases)-1 > basesMax {
		least := 1
		for i := 2; i < len(bases)-1; i++ { // the oldest stays: the log is cut up to it
			if bases[i-1].index-bases[i+1].index < bases[least-1].index-bases[least+1].index {
				least = i
			}
		}
		out = append(out, bases[least].name)
		bases = slices.Delete(bases, least, least+1)
	}
	return out
}

// cutAt returns where the log may begin if it has to keep everything from keep on: behind the newest snapshot before
// that, so that every entry that stays has a base. Without such a snapshot nothing can go yet.
func (s *snapStore) cutAt(keep uint64) (uint64, error) {
	names, err := snapshotNames(s.dir)
	if err != nil {
		return 0, fmt.Errorf("compact the log: %w", err)
	}
	for _, name := range names {
		if index, ok := snapshotIndex(name); ok && index < keep {
			return index + 1, nil
		}
	}
	return 1, nil
}
