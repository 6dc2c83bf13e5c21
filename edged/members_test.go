package edged

import (
	"errors"
	"testing"

	"iop/storage"
)

// TestRemovingKeepsAMajority of those that answer, and the last voter.
func TestRemovingKeepsAMajority(t *testing.T) {
	seat := func(id string, voter, answers bool) storage.Seat {
		s := storage.Seat{Member: storage.Member{ID: id, Voter: voter}, Err: errors.New("no answer")}
		if answers {
			s.Standing, s.Err = &storage.Standing{ID: id}, nil
		}
		return s
	}
	up := func(id string) storage.Seat { return seat(id, true, true) }
	down := func(id string) storage.Seat { return seat(id, true, false) }
	for _, c := range []struct {
		what  string
		seats []storage.Seat
		out   string
		code  string
	}{
		{"the last", []storage.Seat{up("a")}, "a", "last_voter"},
		{"the last beside one that joins", []storage.Seat{up("a"), seat("b", false, true)}, "a", "last_voter"},
		{"one of two", []storage.Seat{up("a"), up("b")}, "a", ""},
		{"the living one of two", []storage.Seat{up("a"), down("b")}, "a", "majority"},
		{"the dead one of two", []storage.Seat{up("a"), down("b")}, "b", ""},
		{"one of three", []storage.Seat{up("a"), up("b"), up("c")}, "a", ""},
		{"a living one of three with a dead one", []storage.Seat{up("a"), up("b"), down("c")}, "a", "majority"},
		{"the dead one of three", []storage.Seat{up("a"), up("b"), down("c")}, "c", ""},
		{"a living one of five with a dead one", []storage.Seat{up("a"), up("b"), up("c"), up("d"), down("e")}, "a", ""},
		{"a living one of five with two dead ones", []storage.Seat{up("a"), up("b"), up("c"), down("d"), down("e")}, "a", "majority"},
	} {
		e := stops(c.seats, c.out)
		switch {
		case e == nil && c.code == "":
		case e == nil || e.Code != c.code || e.Cure == "" || e.Message == "":
			t.Errorf("%s: %+v, want %q", c.what, e, c.code)
		}
	}
}
