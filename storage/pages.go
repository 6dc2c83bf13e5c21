package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// verifyPages walks all pages of the log's file that are in use, before bbolt maps it: of what does not fit together
// bbolt makes a panic, a fault in memory, or another log. It holds for the file's two meta pages, too: bbolt would take
// the older one if the newer can't be read, and so forget the last entry, which may have been acknowledged. (A crash
// can't tear a meta page: what it consists of is 80 bytes within one sector.)
//
//	page:  id 8 | flags 2 | count 2 | overflow 4 | elements | keys and values
//	meta:  magic 4 | version 4 | page size 4 | flags 4 | root 8 | sequence 8 | free list 8 | pages 8 | txid 8 | FNV-64a 8
func verifyPages(path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	t := &pageTree{from: f, size: uint64(info.Size())}
	if err = t.verify(); err != nil {
		return fmt.Errorf("%w: %s: %w; %s", ErrDamaged, path, err, wayOut)
	}
	return nil
}

// wayOut is what can be done about a log that can't be read.
const wayOut = "restore the directory from a backup. To begin anew and lose all state, remove the whole directory"

const (
	pageHead   = 16
	branchPage = 1
	leafPage   = 2
	metaPage   = 4

	elementSize = 16
	bucketHead  = 16
	metaMagic   = 0xED0CDAED
	metaVersion = 2
	metaSize    = 64
)

type pageTree struct {
	from   io.ReaderAt
	size   uint64 // of the file, in bytes
	page   uint64 // size of a page, in bytes
	pages  uint64 // the file has at least so many
	seen   []uint64
	inLogs bool
	inside bool   // a bucket; a log's buckets have none themselves
	parts  int    // buckets that a log has
	last   uint64 // index of the entry seen last
}

type metaFields struct{ size, root, pages, txid uint64 }

func (t *pageTree) verify() error {
	first, err := t.meta(0, 0)
	if err != nil {
		return err
	}
	t.page = first.size
	newest, err := t.meta(1, t.page)
	if err != nil {
		return err
	}
	if first.size != newest.size || first.txid+1 != newest.txid && newest.txid+1 != first.txid {
		return errors.New("its two meta pages do not belong together")
	}
	if first.txid > newest.txid {
		newest = first
	}
	if t.pages = newest.pages; t.pages > t.size/t.page {
		return fmt.Errorf("cut off: it has %d bytes, %d pages of %d are in use", t.size, t.pages, t.page)
	}
	t.seen = make([]uint64, t.pages/64+1)
	if err := t.tree(newest.root, nil, nil, 0); err != nil {
		return err
	}
	if t.parts != 2 {
		return errors.New("it is not a log")
	}
	return nil
}

func (t *pageTree) meta(id, at uint64) (m metaFields, err error) {
	b := make([]byte, pageHead+metaSize)
	if _, err := t.from.ReadAt(b, int64(at)); err != nil {
		return m, fmt.Errorf("cut off in meta page %d", id)
	}
	h := fnv.New64a()
	_, _ = h.Write(b[pageHead : pageHead+metaSize-8])
	body := b[pageHead:]
	m = metaFields{size: uint64(binary.LittleEndian.Uint32(body[8:])), root: binary.LittleEndian.Uint64(body[16:]), pages: binary.LittleEndian.Uint64(body[40:]), txid: binary.LittleEndian.Uint64(body[48:])}
	switch {
	case binary.LittleEndian.Uint64(b) != id, binary.LittleEndian.Uint16(b[8:]) != metaPage, binary.LittleEndian.Uint32(body) != metaMagic, binary.LittleEndian.Uint32(body[4:]) != metaVersion,
		binary.LittleEndian.Uint64(body[56:]) != h.Sum64(), m.size < 512, m.size > 1<<16, m.size&(m.size-1) != 0, m.txid%2 != id:
		return m, fmt.Errorf("the checksum of meta page %d does not match", id)
	}
	return m, nil
}

// read returns a page with what overflows it, and refuses one that has no place in the tree or a second one.
func (t *pageTree) read(id uint64) ([]byte, error) {
	if id < 2 || id >= t.pages {
		return nil, fmt.Errorf("page %d does not exist", id)
	}
	b := make([]byte, t.page)
	if _, err := t.from.ReadAt(b, int64(id*t.page)); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	overflow := uint64(binary.LittleEndian.Uint32(b[12:]))
	if binary.LittleEndian.Uint64(b) != id || overflow >= t.pages-id {
		return nil, fmt.Errorf("page %d has the head of another", id)
	}
	for i := id; i <= id+overflow; i++ {
		if t.seen[i/64]&(1<<(i%64)) != 0 {
			return nil, fmt.Errorf("page %d is used twice", i)
		}
		t.seen[i/64] |= 1 << (i % 64)
	}
	if overflow > 0 {
		b = append(b, make([]byte, overflow*t.page)...)
		if _, err := t.from.ReadAt(b[t.page:], int64((id+1)*t.page)); err != nil {
			return nil, fmt.Errorf("page %d: %w", id, err)
		}
	}
	return b, nil
}

// pageDepth is more than a log's tree can have.
const pageDepth = 64

// tree verifies a page and all below it. The keys must be from low (included) to high (excluded); nil = any.
func (t *pageTree) tree(id uint64, low, high []byte, depth int) error {
	b, err := t.read(id)
	if err != nil {
		return err
	}
	if depth > pageDepth {
		return fmt.Errorf("page %d is too deep", id)
	}
	if err := t.elements(b, low, high, depth); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// element returns a part of a page, relative to the element at the given place.
func element(b []byte, at int, pos, n uint64) ([]byte, error) {
	from := uint64(at) + pos
	if from > uint64(len(b)) || n > uint64(len(b))-from {
		return nil, errors.New("an element is out of the page")
	}
	return b[from : from+n], nil
}

var errKeyOrder = errors.New("its keys are not in order")

func (t *pageTree) elements(b, low, high []byte, depth int) error {
	flags, count := binary.LittleEndian.Uint16(b[8:]), int(binary.LittleEndian.Uint16(b[10:]))
	if flags != leafPage && flags != branchPage || flags == branchPage && count == 0 {
		return errors.New("it is neither branch nor leaf")
	}
	if len(b) < pageHead+count*elementSize {
		return errors.New("it has more elements than room")
	}
	key := func(i int) ([]byte, error) {
		at := pageHead + i*elementSize
		if flags == branchPage {
			return element(b, at, uint64(binary.LittleEndian.Uint32(b[at:])), uint64(binary.LittleEndian.Uint32(b[at+4:])))
		}
		return element(b, at, uint64(binary.LittleEndian.Uint32(b[at+4:])), uint64(binary.LittleEndian.Uint32(b[at+8:])))
	}
	previous := low
	for i := range count {
		k, err := key(i)
		if err != nil {
			return err
		}
		if c := bytes.Compare(previous, k); previous != nil && (c > 0 || c == 0 && i > 0) || high != nil && bytes.Compare(k, high) >= 0 {
			return errKeyOrder
		}
		previous = k
		at := pageHead + i*elementSize
		if flags == leafPage {
			if err := t.leaf(b, at, k, depth); err != nil {
				return err
			}
			continue
		}
		next := high
		if i+1 < count {
			if next, err = key(i + 1); err != nil {
				return err
			}
		}
		if err := t.tree(binary.LittleEndian.Uint64(b[at+8:]), k, next, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// leaf verifies the element at a place of a leaf: an entry of the log, a value, or a bucket with its own tree.
func (t *pageTree) leaf(b []byte, at int, key []byte, depth int) error {
	v, err := element(b, at, uint64(binary.LittleEndian.Uint32(b[at+4:]))+uint64(len(key)), uint64(binary.LittleEndian.Uint32(b[at+12:])))
	if err != nil {
		return err
	}
	switch kind := binary.LittleEndian.Uint32(b[at:]); {
	case kind == 1 && len(v) >= bucketHead && !t.inside:
		t.inside = true
		t.inLogs = string(key) == "logs"
		if t.inLogs || string(key) == "conf" {
			t.parts++
		}
		if root := binary.LittleEndian.Uint64(v); root != 0 {
			err = t.tree(root, nil, nil, depth+1)
		} else if len(v) >= bucketHead+pageHead {
			err = t.elements(v[bucketHead:], nil, nil, depth+1)
		} else {
			err = errors.New("a bucket is cut off")
		}
		t.inLogs, t.inside = false, false
		return err
	case kind != 0:
		return errors.New("an element of an unknown kind")
	case !t.inLogs:
		return nil
	}
	if len(key) != 8 {
		return errKeyOrder
	}
	index := binary.BigEndian.Uint64(key)
	if t.last != 0 && index != t.last+1 {
		return fmt.Errorf("the log entries after %d are missing", t.last)
	}
	t.last = index
	return nil
}
