package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"iop/fsm"
)

// The vault is a file of its own beside the log: what clients asked of stored responses and what they were told. The
// machine says what is to be written (fsm.Write); it keeps none of it in memory.
//
//	bucket meta       "format" → 1; "index" → of the last log entry whose writes are all in
//	bucket responses  len(id) id 'r' → record | … 'o' → object | … 'e' number of the first event → count, events
//
// Each value has a CRC-32C before it. Writes are gathered and put in behind the log: the log holds them until a snapshot
// lets its entries go, and no snapshot is written before the vault has all that the snapshot presumes. So a crash costs
// nothing: the replay at the next start brings the same writes again, and those up to "index" are known.
const (
	vaultDB     = "responses.db"
	vaultFormat = 1

	// vaultEach is how long writes are gathered, vaultBytes how many bytes of them at most before they are put in at once,
	// and vaultBytesMax before applying waits for that.
	vaultEach     = 100 * time.Millisecond
	vaultBytes    = 2 << 20
	vaultBytesMax = 16 << 20
)

// vault keeps payloads.
type vault struct {
	path string
	fail func(error)

	flushing sync.Mutex // one flush at a time; taken before mu

	mu     sync.RWMutex // guards the rest
	db     *bbolt.DB    // nil = there is no file yet
	index  uint64       // as in meta
	queue  []*vaultWrite
	by     map[fsm.ResponseID][]*vaultWrite // of queue
	bytes  int
	news   map[fsm.ResponseID]chan struct{} // closed when something of a response changes
	broken error

	kick chan struct{}
	quit chan struct{}
	done chan struct{}
}

// vaultWrite is a write that is not in the file yet.
type vaultWrite struct {
	index uint64
	fsm.Write
}

// openVault opens the vault of a directory. Its file is made with the first write.
func openVault(dir string, fail func(error)) (*vault, error) {
	v := &vault{
		path: filepath.Join(dir, vaultDB), fail: fail, by: map[fsm.ResponseID][]*vaultWrite{}, news: map[fsm.ResponseID]chan struct{}{},
		kick: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	if _, err := os.Stat(v.path); errors.Is(err, os.ErrNotExist) {
		return v, nil
	}
	db, index, err := openVaultFile(v.path, false)
	if err != nil {
		return nil, err
	}
	v.db, v.index = db, index
	return v, nil
}

// openVaultFile opens a file of payloads, or makes one that is not there, and reads what it has.
func openVaultFile(path string, readOnly bool) (db *bbolt.DB, index uint64, err error) {
	damaged := func(err error) error {
		return fmt.Errorf("%w: %s can't be read: %w; restore the directory from a backup, or, of a replica that is not alone, begin with an empty directory under a new replica id", ErrDamaged, path, err)
	}
	defer func() { // bbolt panics on pages that make no sense
		if r := recover(); r != nil {
			db, err = nil, damaged(fmt.Errorf("%v", r))
		}
	}()
	db, err = bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout: time.Second, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, ReadOnly: readOnly,
	})
	if err != nil {
		return nil, 0, damaged(err)
	}
	if !readOnly {
		err = db.Update(func(tx *bbolt.Tx) error {
			meta, err := tx.CreateBucketIfNotExists([]byte("meta"))
			if err != nil {
				return err
			}
			if _, err := tx.CreateBucketIfNotExists([]byte("responses")); err != nil || meta.Get([]byte("format")) != nil {
				return err
			}
			return meta.Put([]byte("format"), []byte{vaultFormat})
		})
	}
	if err == nil {
		err = db.View(func(tx *bbolt.Tx) error {
			meta := tx.Bucket([]byte("meta"))
			if meta == nil || tx.Bucket([]byte("responses")) == nil || len(meta.Get([]byte("format"))) != 1 {
				return errors.New("it is no store of responses")
			}
			if f := meta.Get([]byte("format"))[0]; f != vaultFormat {
				return fmt.Errorf("%w: format %d, this version reads %d", ErrNewer, f, vaultFormat)
			}
			if b := meta.Get([]byte("index")); len(b) == 8 {
				index = binary.BigEndian.Uint64(b)
			}
			return nil
		})
	}
	if err != nil {
		return nil, 0, errors.Join(damaged(err), db.Close())
	}
	return db, index, nil
}

// knows tells whether the vault has what a state after entry index presumes of it.
func (v *vault) knows(index uint64) error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.index >= index {
		return nil
	}
	what := "is missing"
	if v.db != nil {
		what = fmt.Sprintf("is of entry %d", v.index)
	}
	return fmt.Errorf("%w: %s %s, and the snapshot of entry %d presumes more; put the right file back, or restore the directory from a backup, or, of a replica that is not alone, begin with an empty directory under a new replica id",
		ErrDamaged, v.path, what, index)
}

// add takes the writes of an entry, in order. full = too much is left to be put in: wait for a flush.
func (v *vault) add(index uint64, writes []fsm.Write) (full bool) {
	v.mu.Lock()
	for i := range writes {
		if index <= v.index {
			v.tell(writes[i].Response)
			continue // they are in, since before the last start
		}
		w := &vaultWrite{index: index, Write: writes[i]}
		v.queue = append(v.queue, w)
		v.by[w.Response] = append(v.by[w.Response], w)
		v.bytes += len(w.Record) + len(w.Object) + len(w.Events) + 64
		v.tell(w.Response)
	}
	full = v.bytes > vaultBytesMax && v.broken == nil
	v.mu.Unlock()
	select {
	case v.kick <- struct{}{}:
	default:
	}
	return full
}

// tell wakes those who wait for something of a response. The caller holds mu.
func (v *vault) tell(id fsm.ResponseID) {
	if c := v.news[id]; c != nil {
		close(c)
		delete(v.news, id)
	}
}

// changes returns what is closed when something of a response changes from now on.
func (v *vault) changes(id fsm.ResponseID) <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.news[id]
	if c == nil {
		c = make(chan struct{})
		v.news[id] = c
	}
	return c
}

// run puts writes in behind the log until stop.
func (v *vault) run() {
	defer close(v.done)
	timer := time.NewTimer(vaultEach)
	defer timer.Stop()
	for {
		select {
		case <-v.kick:
		case <-v.quit:
			return
		}
		timer.Reset(vaultEach)
		for waiting := true; waiting; {
			select {
			case <-timer.C:
				waiting = false
			case <-v.kick:
				v.mu.RLock()
				waiting = v.bytes < vaultBytes
				v.mu.RUnlock()
			case <-v.quit:
				return
			}
		}
		if v.flush(0) != nil {
			return
		}
	}
}

// flush puts in what has been added, durably. With an index, all writes up to it have been added.
func (v *vault) flush(index uint64) error {
	v.flushing.Lock()
	defer v.flushing.Unlock()
	v.mu.Lock()
	queue, err := v.queue, v.broken
	reached := v.index
	if n := len(queue); n > 0 { // writes of one entry are added at once, so all of the last one's are here
		reached = max(reached, queue[n-1].index)
	}
	reached = max(reached, index)
	if err == nil && v.db == nil && len(queue) > 0 {
		err = v.make()
	}
	db := v.db
	v.mu.Unlock()
	if err != nil || db == nil || reached == v.index && len(queue) == 0 {
		return v.failed(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		all := tx.Bucket([]byte("responses"))
		for _, w := range queue {
			if err := putWrite(all, &w.Write); err != nil {
				return err
			}
		}
		return tx.Bucket([]byte("meta")).Put([]byte("index"), binary.BigEndian.AppendUint64(nil, reached))
	})
	if err != nil {
		return v.failed(fmt.Errorf("write %s: %w", v.path, err))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.index = reached
	v.taken(len(queue))
	return nil
}

// make makes the file, which gets its name when it is one. The caller holds flushing and mu.
func (v *vault) make() error {
	db, _, err := openVaultFile(v.path+temporarySuffix, false)
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return fmt.Errorf("make %s: %w", v.path, err)
	}
	if err := os.Rename(v.path+temporarySuffix, v.path); err != nil {
		return fmt.Errorf("make %s: %w", v.path, err)
	}
	if err := syncDir(filepath.Dir(v.path)); err != nil {
		return err
	}
	v.db, _, err = openVaultFile(v.path, false)
	return err
}

// taken forgets the first writes of the queue, which are in. The caller holds mu.
func (v *vault) taken(n int) {
	for _, w := range v.queue[:n] {
		v.bytes -= len(w.Record) + len(w.Object) + len(w.Events) + 64
		if rest := v.by[w.Response][1:]; len(rest) > 0 {
			v.by[w.Response] = rest
		} else {
			delete(v.by, w.Response)
		}
	}
	v.queue = append([]*vaultWrite(nil), v.queue[n:]...)
}

// failed notes and tells the first failure.
func (v *vault) failed(err error) error {
	if err == nil {
		return nil
	}
	v.mu.Lock()
	first := v.broken == nil
	if first {
		v.broken = err
	}
	v.mu.Unlock()
	if first && v.fail != nil {
		v.fail(err)
	}
	return err
}

// start has writes put in from now on.
func (v *vault) start() { go v.run() }

// stop puts in what is left of the entries up to index, and closes the file. Call it once, after start.
func (v *vault) stop(index uint64) error {
	close(v.quit)
	<-v.done
	return v.close(index)
}

// abandon ends what puts writes in, and leaves the file to the end of the process: something does not return from the disk.
func (v *vault) abandon() { close(v.quit) }

func (v *vault) close(index uint64) error {
	err := v.flush(index)
	v.flushing.Lock()
	defer v.flushing.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.db != nil {
		err = errors.Join(err, v.db.Close())
		v.db = nil
	}
	if v.broken == nil {
		v.broken = ErrClosed
	}
	return err
}
