package storage

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"iop/fsm"
)

// ErrNoResponse says that no response of this id is stored.
var ErrNoResponse = errors.New("no such response is stored")

// StoredResponse is a response with its payload.
type StoredResponse struct {
	fsm.ResponseRow
	Record []byte
	Object []byte
}

// Events are some events of a response, one after the other as they were written together.
type Events struct {
	From  int64 // number of the first
	Count int64
	Bytes []byte
}

// responsePart is what is read of a response in one go.
type responsePart struct {
	record, object []byte
	events         []Events
}

// Response returns a stored response as this replica knows it. Errors: ErrNoResponse, ErrDamaged.
func (s *Store) Response(id fsm.ResponseID) (*StoredResponse, error) {
	row, _, err := s.responseRow(id)
	if err != nil {
		return nil, err
	}
	p, err := s.vault.read(id, -1)
	if err != nil {
		return nil, err
	}
	if p.record == nil {
		return nil, ErrNoResponse // it went in between
	}
	return &StoredResponse{ResponseRow: row, Record: p.record, Object: p.object}, nil
}

// ResponseRow returns what the machine knows of a response, and the lease it runs on, 0 = none. Error: ErrNoResponse.
func (s *Store) ResponseRow(id fsm.ResponseID) (fsm.ResponseRow, fsm.LeaseID, error) {
	return s.responseRow(id)
}

func (s *Store) responseRow(id fsm.ResponseID) (row fsm.ResponseRow, lease fsm.LeaseID, err error) {
	found := false
	s.replica.view(func(m *fsm.Machine) { row, lease, found = m.Response(id) })
	if !found {
		return row, 0, ErrNoResponse
	}
	return row, lease, nil
}

// ResponseEvents returns the events of a response from a number on that this replica knows, in order and without a gap.
// Errors: ErrNoResponse, ErrDamaged.
func (s *Store) ResponseEvents(id fsm.ResponseID, from int64) ([]Events, fsm.ResponseRow, error) {
	row, _, err := s.responseRow(id)
	if err != nil {
		return nil, row, err
	}
	p, err := s.vault.read(id, max(from, 0))
	if err != nil {
		return nil, row, err
	}
	next := max(from, 0)
	for _, e := range p.events {
		if e.From > next {
			return nil, row, fmt.Errorf("%w: events of %s from %d on are missing", ErrDamaged, id, next)
		}
		next = e.From + e.Count
	}
	if next < row.Events {
		if _, _, err := s.responseRow(id); err != nil {
			return nil, row, err // it went in between
		}
		return nil, row, fmt.Errorf("%w: events of %s from %d on are missing", ErrDamaged, id, next)
	}
	return p.events, row, nil
}

// ResponseChanges returns what is closed when something of a response changes from now on. To wait without a gap, ask for
// it before looking.
func (s *Store) ResponseChanges(id fsm.ResponseID) <-chan struct{} { return s.vault.changes(id) }

// read reads a response: its events from a number on, or with -1 all but the events.
func (v *vault) read(id fsm.ResponseID, from int64) (p responsePart, err error) {
	defer func() { // bbolt panics on pages that make no sense
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %s: %v", ErrDamaged, v.path, r)
		}
	}()
	var tx *bbolt.Tx
	v.mu.RLock()
	writes := append([]*vaultWrite(nil), v.by[id]...)
	if v.db != nil {
		tx, err = v.db.Begin(false)
	} else if v.broken != nil {
		err = v.broken
	}
	v.mu.RUnlock()
	if err != nil {
		return p, fmt.Errorf("read %s: %w", v.path, err)
	}
	if tx != nil {
		err = p.load(tx.Bucket([]byte("responses")), id, from)
		if err = errors.Join(err, tx.Rollback()); err != nil {
			return p, err
		}
	}
	for _, w := range writes { // they may be in the file by now; then they change nothing
		p.put(&w.Write, from)
	}
	return p, nil
}

func (p *responsePart) load(b *bbolt.Bucket, id fsm.ResponseID, from int64) (err error) {
	value := func(v []byte) []byte {
		if v == nil || err != nil {
			return nil
		}
		var body []byte
		body, err = unsealValue(v)
		return append([]byte{}, body...)
	}
	if from < 0 {
		p.record, p.object = value(b.Get(responseKey(id, valueRecord))), value(b.Get(responseKey(id, valueObject)))
		return err
	}
	prefix := responseKey(id, valueEvents)
	c := b.Cursor()
	at := eventsKey(id, from)
	k, v := c.Seek(at)
	if string(k) != string(at) { // the event may be in the middle of those before
		if k == nil {
			k, v = c.Last()
		} else {
			k, v = c.Prev()
		}
		if !hasPrefix(k, prefix) {
			k, v = c.Seek(prefix)
		}
	}
	for ; hasPrefix(k, prefix) && err == nil; k, v = c.Next() {
		body := value(v)
		if err != nil || len(body) < 8 || len(k) != len(prefix)+8 {
			return errors.Join(err, fmt.Errorf("%w: events of %s", ErrDamaged, id))
		}
		p.add(Events{From: int64(binary.BigEndian.Uint64(k[len(prefix):])), Count: int64(binary.BigEndian.Uint64(body)), Bytes: body[8:]}, from)
	}
	return err
}

func hasPrefix(k, prefix []byte) bool {
	return len(k) >= len(prefix) && string(k[:len(prefix)]) == string(prefix)
}

// add puts events behind those that there are, unless they are among them.
func (p *responsePart) add(e Events, from int64) {
	next := from
	if n := len(p.events); n > 0 {
		next = p.events[n-1].From + p.events[n-1].Count
	}
	if e.From+e.Count > next {
		p.events = append(p.events, e)
	}
}

func (p *responsePart) put(w *fsm.Write, from int64) {
	switch {
	case w.Drop:
		*p = responsePart{}
		return
	case from < 0:
		if w.Record != nil {
			p.record = w.Record
		}
		if w.Object != nil {
			p.object = w.Object
		}
	case w.Count > 0:
		p.add(Events{From: w.From, Count: w.Count, Bytes: w.Events}, from)
	}
}
