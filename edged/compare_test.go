package edged

import (
	"errors"
	"slices"
	"testing"
	"time"

	"iop/storage"
)

func TestDifferences(t *testing.T) {
	r := func(id string, index uint64, digest byte, err error) storage.VerifiedReplica {
		return storage.VerifiedReplica{Member: storage.Member{ID: id}, Index: index, Digest: [32]byte{digest}, Err: err}
	}
	for name, c := range map[string]struct {
		replicas []storage.VerifiedReplica
		differ   []string
		silent   int
	}{
		"same":          {[]storage.VerifiedReplica{r("a", 7, 1, nil), r("b", 7, 1, nil)}, nil, 0},
		"another state": {[]storage.VerifiedReplica{r("a", 7, 1, nil), r("b", 7, 2, nil), r("c", 7, 1, nil)}, []string{"b"}, 0},
		"another place": {[]storage.VerifiedReplica{r("a", 7, 1, nil), r("b", 8, 1, nil)}, []string{"b"}, 0},
		"silent":        {[]storage.VerifiedReplica{r("a", 7, 1, nil), r("b", 0, 0, errors.New("no answer"))}, nil, 1},
		"unknown own":   {[]storage.VerifiedReplica{r("a", 0, 0, errors.New("late")), r("b", 7, 1, nil)}, nil, 1},
	} {
		differ, silent := differences(&storage.Verified{Index: 7, Replicas: c.replicas}, "a")
		if !slices.Equal(differ, c.differ) || silent != c.silent {
			t.Errorf("%s: %v %d", name, differ, silent)
		}
	}
}

// Fault: an idle cluster writes to its log for ever because it compares itself.
func TestComparingWaitsForNews(t *testing.T) {
	var c comparison
	now := time.Unix(0, 0).Add(time.Hour)
	if c.due(now, 10, 3) {
		t.Error("at once")
	}
	now = now.Add(compareEach)
	if c.due(now, 10, 1) {
		t.Error("alone")
	}
	if !c.due(now, 10, 3) {
		t.Error("not when it is time")
	}
	c.seen = 11
	now = now.Add(compareEach)
	if c.due(now, 11, 3) {
		t.Error("though nothing happened")
	}
	if !c.due(now, 12, 3) {
		t.Error("not when something happened")
	}
}
