package bootstrap

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// buildMax is the largest build that is served, in bytes.
const buildMax = 512 << 20

// Builds are the names of the builds that can be served: those of make artifacts. Nothing else of the directory is.
func Builds() []string {
	return []string{
		"noded-darwin-amd64", "noded-darwin-arm64", "noded-linux-amd64", "noded-linux-arm64",
		"noded-windows-amd64.exe", "noded-windows-arm64.exe",
	}
}

// Build is a build that is there.
type Build struct {
	Name   string
	SHA256 string // 64 hex digits
	Size   int64  // bytes
}

// shelf is the directory of the builds. Checksums are computed here, and again when a file was changed.
type shelf struct {
	dir string

	mu   sync.Mutex // guards sums; held while a checksum is computed, so that each is once
	sums map[string]sum
}

type sum struct {
	size  int64
	mtime time.Time
	hex   string
}

// errNoDir tells that no directory is configured.
var errNoDir = errors.New("edge.bootstrap.artifact_dir is not set; 'make artifacts' fills such a directory")

// open opens a build that the name stands for, and knows its checksum. The caller closes it.
func (s *shelf) open(name string) (*os.File, Build, error) {
	if s.dir == "" {
		return nil, Build{}, errNoDir
	}
	root, err := os.OpenRoot(s.dir) // nothing outside can be reached through it
	if err != nil {
		return nil, Build{}, fmt.Errorf("edge.bootstrap.artifact_dir: %w", err)
	}
	defer root.Close() //nolint:errcheck // only read from
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Build{}, fmt.Errorf("there is no build %s in edge.bootstrap.artifact_dir: %w", name, fs.ErrNotExist)
	case err != nil:
		return nil, Build{}, fmt.Errorf("look at build %s: %w", name, err)
	case !info.Mode().IsRegular():
		return nil, Build{}, fmt.Errorf("build %s is no regular file: links and the like are not served", name)
	case info.Size() > buildMax:
		return nil, Build{}, fmt.Errorf("build %s has %d bytes: more than %d are not served", name, info.Size(), int64(buildMax))
	case info.Size() == 0:
		return nil, Build{}, fmt.Errorf("build %s is empty", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, Build{}, fmt.Errorf("open build %s: %w", name, err)
	}
	b, err := s.measure(f, name, info)
	if err != nil {
		_ = f.Close() // only read from
		return nil, Build{}, err
	}
	return f, b, nil
}

// measure gives the checksum of an open build, from memory if it is the file of before.
func (s *shelf) measure(f *os.File, name string, was fs.FileInfo) (Build, error) {
	info, err := f.Stat()
	if err != nil {
		return Build{}, fmt.Errorf("look at build %s: %w", name, err)
	}
	if !os.SameFile(info, was) {
		return Build{}, fmt.Errorf("build %s was replaced in this moment: try again", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.sums[name]
	if !ok || known.size != info.Size() || !known.mtime.Equal(info.ModTime()) {
		h := sha256.New()
		n, err := io.Copy(h, io.LimitReader(f, buildMax+1))
		if err != nil {
			return Build{}, fmt.Errorf("read build %s: %w", name, err)
		}
		if n != info.Size() {
			return Build{}, fmt.Errorf("build %s was changed while it was read: try again", name)
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return Build{}, fmt.Errorf("read build %s: %w", name, err)
		}
		known = sum{size: n, mtime: info.ModTime(), hex: hex.EncodeToString(h.Sum(nil))}
		if s.sums == nil {
			s.sums = map[string]sum{}
		}
		s.sums[name] = known
	}
	return Build{Name: name, SHA256: known.hex, Size: known.size}, nil
}

// list gives the builds that there are, by name. What is there but can't be served is an error.
func (s *shelf) list() ([]Build, error) {
	var out []Build
	if s.dir == "" {
		return nil, errNoDir
	}
	for _, name := range Builds() {
		f, b, err := s.open(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		}
		_ = f.Close() // only read from
		out = append(out, b)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no build in %s: 'make artifacts' makes them: %w", s.dir, fs.ErrNotExist)
	}
	return out, nil
}
