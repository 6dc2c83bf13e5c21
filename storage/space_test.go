package storage

import (
	"path/filepath"
	"testing"
)

func TestSpace(t *testing.T) {
	if x, ok := spaceOf(t.TempDir()); !ok || x.Size <= 0 || x.Free < 0 || x.Free > x.Size {
		t.Errorf("%+v %v", x, ok)
	}
	if x, ok := spaceOf(filepath.Join(t.TempDir(), "none")); ok {
		t.Errorf("of a directory that is not there: %+v", x)
	}
}
