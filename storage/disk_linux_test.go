package storage

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sector is what a disk writes whole or not at all, in bytes.
const sector = 512

// disk is what could be on a disk after a crash, made from the calls of a process: of each file what was synced, and
// what was written since, of which any part may have got there; of each directory the names that were synced, and what
// happened to them since, of which a beginning may have got there (file systems keep the order within a directory).
type disk struct {
	root string
	top  *inode
}

type inode struct {
	folder bool
	// of a file
	synced  image
	changes []change
	// of a folder
	names   map[string]*inode // synced
	now     map[string]*inode
	renames []naming
}

// image is the content of a file.
type image struct {
	size    int64
	sectors map[int64][]byte // a missing one is zero
}

type change struct {
	at   int64
	data []byte // nil: the size changed to at
}

type naming struct {
	name string
	to   *inode // nil = removed
}

func newFolder() *inode {
	return &inode{folder: true, names: map[string]*inode{}, now: map[string]*inode{}}
}

func newDisk(root string) *disk { return &disk{root: root, top: newFolder()} }

func (d *disk) find(path string) *inode {
	at := d.top
	rest := strings.Trim(strings.TrimPrefix(path, d.root), "/")
	if rest == "" {
		return at
	}
	for _, name := range strings.Split(rest, "/") {
		if at == nil || !at.folder {
			return nil
		}
		at = at.now[name]
	}
	return at
}

func (n *inode) name(name string, to *inode) {
	if to == nil {
		delete(n.now, name)
	} else {
		n.now[name] = to
	}
	n.renames = append(n.renames, naming{name, to})
}

// do is called with what the process does, in order.
func (d *disk) do(c *call) error {
	if c.kind == callLine {
		return nil
	}
	folder, name, at := d.find(filepath.Dir(c.path)), filepath.Base(c.path), d.find(c.path)
	switch c.kind {
	case callCreate, callMkdir:
		if at == nil {
			at = &inode{}
			if c.kind == callMkdir {
				at = newFolder()
			}
			folder.name(name, at)
		} else if c.kind == callCreate && c.size < 0 {
			at.changes = append(at.changes, change{})
		}
		return nil
	case callRemove:
		if at != nil {
			folder.name(name, nil)
		}
		return nil
	}
	if at == nil {
		return fmt.Errorf("%v: no such file", c)
	}
	switch c.kind {
	case callWrite:
		offset := c.offset
		if offset < 0 {
			offset = at.current().size
		}
		at.changes = append(at.changes, change{offset, c.data})
	case callTruncate:
		at.changes = append(at.changes, change{at: c.size})
	case callRename:
		folder.name(filepath.Base(c.to), at)
		folder.name(name, nil)
	case callSync:
		at.sync()
	}
	return nil
}

func (n *inode) sync() {
	if n.folder {
		n.names, n.renames = cloneNames(n.now), nil
		return
	}
	n.synced, n.changes = n.current(), nil
}

func cloneNames(in map[string]*inode) map[string]*inode {
	out := make(map[string]*inode, len(in))
	for k, v := range in {
		out[k] = v
	}
	return out
}

func (n *inode) current() image {
	out := n.synced.clone()
	for _, c := range n.changes {
		out.apply(c)
	}
	return out
}

func (i image) clone() image {
	out := image{size: i.size, sectors: make(map[int64][]byte, len(i.sectors))}
	for k, v := range i.sectors {
		out.sectors[k] = v
	}
	return out
}

var zeroSector = make([]byte, sector)

func (i *image) sector(k int64) []byte {
	if s := i.sectors[k]; s != nil {
		return s
	}
	return zeroSector
}

// apply never changes a sector in place: images share them.
func (i *image) apply(c change) {
	if c.data == nil {
		if c.at < i.size {
			for k := range i.sectors {
				if k*sector >= c.at {
					delete(i.sectors, k)
				}
			}
		}
		i.size = c.at
		return
	}
	for k := c.at / sector; k*sector < c.at+int64(len(c.data)); k++ {
		s := slices.Clone(i.sector(k))
		from := max(c.at, k*sector)
		copy(s[from-k*sector:], c.data[from-c.at:])
		i.sectors[k] = s
	}
	i.size = max(i.size, c.at+int64(len(c.data)))
}

// luck decides what of the un-synced got to the disk.
type luck interface {
	names(n int) int // how many of n changes of names
	content(synced image, changes []change) image
}

// allOrNothing is the disk that kept everything, and the one that kept nothing but what was synced.
type allOrNothing bool

func (a allOrNothing) names(n int) int {
	if a {
		return n
	}
	return 0
}

func (a allOrNothing) content(synced image, changes []change) image {
	if a {
		return (&inode{synced: synced, changes: changes}).current()
	}
	return synced
}

// subset keeps the whole writes whose bits are set, in the order in which they are asked for.
type subset struct {
	bits    uint
	asked   int
	renames bool
}

func (s *subset) names(n int) int {
	if s.renames {
		return n
	}
	return 0
}

func (s *subset) content(synced image, changes []change) image {
	out := synced.clone()
	for _, c := range changes {
		if s.bits&(1<<s.asked) != 0 {
			out.apply(c)
		}
		s.asked++
	}
	return out
}

// torn keeps each sector as one of the writes left it, or as it was.
type torn struct{ *rand.Rand }

func (t torn) names(n int) int { return t.IntN(n + 1) }

func (t torn) content(synced image, changes []change) image {
	out, step := synced.clone(), synced.clone()
	sizes, touched := []int64{synced.size}, map[int64][][]byte{}
	for _, c := range changes {
		step.apply(c)
		sizes = append(sizes, step.size)
		for k := c.at / sector; k*sector < c.at+int64(len(c.data)); k++ {
			touched[k] = append(touched[k], step.sector(k))
		}
	}
	keys := make([]int64, 0, len(touched))
	for k := range touched {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	bias := t.IntN(4) // from mostly lost to mostly kept
	for _, k := range keys {
		if t.IntN(4) <= bias {
			out.sectors[k] = touched[k][t.IntN(len(touched[k]))]
		}
	}
	out.size = sizes[t.IntN(len(sizes))]
	return out
}

// pending counts the un-synced writes in all files.
func (d *disk) pending() int { return d.top.pending(map[*inode]bool{}) }

func (n *inode) pending(seen map[*inode]bool) int {
	if seen[n] {
		return 0
	}
	seen[n] = true
	sum := len(n.changes)
	for _, names := range []map[string]*inode{n.names, n.now} {
		for _, at := range names {
			sum += at.pending(seen)
		}
	}
	return sum
}

// crashed is a directory tree after a crash, by path relative to the root; nil = a folder.
type crashed map[string]*image

func (d *disk) crash(l luck) crashed {
	out := crashed{}
	d.top.crash("", l, map[*inode]*image{}, out)
	return out
}

func (n *inode) crash(path string, l luck, done map[*inode]*image, out crashed) {
	names := cloneNames(n.names)
	for _, r := range n.renames[:l.names(len(n.renames))] {
		if r.to == nil {
			delete(names, r.name)
		} else {
			names[r.name] = r.to
		}
	}
	for _, name := range sortedNames(names) {
		at := names[name]
		full := filepath.Join(path, name)
		if at.folder {
			out[full] = nil
			at.crash(full, l, done, out)
			continue
		}
		if done[at] == nil { // a file that has two names is one file
			i := l.content(at.synced, at.changes)
			done[at] = &i
		}
		out[full] = done[at]
	}
}

func sortedNames[T any](m map[string]T) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// sum tells whether two crashes left the same.
func (c crashed) sum() (out [32]byte) {
	h := sha256.New()
	for _, path := range sortedNames(c) {
		i := c[path]
		_, _ = fmt.Fprintln(h, path, i == nil)
		if i == nil {
			continue
		}
		keys := make([]int64, 0, len(i.sectors))
		for k := range i.sectors {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		_, _ = fmt.Fprintln(h, i.size, keys)
		for _, k := range keys {
			_, _ = h.Write(i.sectors[k])
		}
	}
	h.Sum(out[:0])
	return out
}

// write makes the tree below root.
func (c crashed) write(t testing.TB, root string) {
	t.Helper()
	for _, path := range sortedNames(c) {
		full := filepath.Join(root, path)
		if c[path] == nil {
			if err := os.MkdirAll(full, 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		f, err := os.Create(full)
		if err != nil {
			t.Fatal(err)
		}
		err = f.Truncate(c[path].size)
		for k, s := range c[path].sectors {
			if n := min(sector, c[path].size-k*sector); n > 0 && err == nil {
				_, err = f.WriteAt(s[:n], k*sector)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
