// Command pack makes an archive of a directory that is the same wherever and whenever it is made: names sorted, times from
// SOURCE_DATE_EPOCH, owner 0, and of the modes only whether a file can be run.
//
//	go run .tools/pack/main.go OUT.tar.gz|OUT.zip DIR
//
// The directory's own name is the archive's only entry at the top.
package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: pack OUT.tar.gz|OUT.zip DIR")
	}
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	out, err := os.Create(args[0])
	if err != nil {
		return err
	}
	pack := tarball
	if strings.HasSuffix(args[0], ".zip") {
		pack = zipped
	}
	return errors.Join(pack(out, args[1], time.Unix(epoch, 0).UTC()), out.Close())
}

// entry is a file or directory below dir, by its name in the archive.
type entry func(name, path string, mode fs.FileMode, size int64) error

// walk calls e for the directory and everything below it, in the order of their names.
func walk(dir string, e entry) error {
	top := filepath.Dir(filepath.Clean(dir))
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case d.IsDir():
			return e(name+"/", path, fs.ModeDir|0o755, 0)
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is neither a file nor a directory", path)
		case info.Mode()&0o100 != 0:
			return e(name, path, 0o755, info.Size())
		}
		return e(name, path, 0o644, info.Size())
	})
}

func tarball(out io.Writer, dir string, at time.Time) error {
	z, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	err = walk(dir, func(name, path string, mode fs.FileMode, size int64) error {
		h := &tar.Header{Name: name, Mode: int64(mode.Perm()), Size: size, ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if mode.IsDir() {
			h.Typeflag = tar.TypeDir
			return t.WriteHeader(h)
		}
		return errors.Join(t.WriteHeader(h), copyFile(t, path))
	})
	return errors.Join(err, t.Close(), z.Close())
}

func zipped(out io.Writer, dir string, at time.Time) error {
	z := zip.NewWriter(out)
	err := walk(dir, func(name, path string, mode fs.FileMode, _ int64) error {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: at}
		h.SetMode(mode)
		if mode.IsDir() {
			h.Method = zip.Store
		}
		w, err := z.CreateHeader(h)
		if err != nil || mode.IsDir() {
			return err
		}
		return copyFile(w, path)
	})
	return errors.Join(err, z.Close())
}

func copyFile(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return errors.Join(err, f.Close())
}
