package noded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"iop/noded/edgelink"
)

// memory is what the node keeps of the cluster's edges over a restart: edges.json in its data directory. Without one it
// keeps nothing. It is a hint, so a file that can't be read or written is only logged.
type memory struct{ dir string }

// keptMax is the largest file that is read, in bytes.
const keptMax = 64 << 10

// keptEdges is the file.
type keptEdges struct {
	Format  int               `json:"format"` // 1
	Cluster string            `json:"cluster"`
	Index   uint64            `json:"index"`
	Edges   map[string]string `json:"edges"` // id → address
}

func (k memory) path() string { return filepath.Join(k.dir, "edges.json") }

// load returns what is kept; nothing if there is no file, or none that can be read.
func (k memory) load(log *slog.Logger) edgelink.Membership {
	if k.dir == "" {
		return edgelink.Membership{}
	}
	kept, err := k.read()
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			log.Warn("the addresses of the cluster's edges are not remembered; those of the node file are dialled", "file", k.path(), "error", err)
		}
		return edgelink.Membership{}
	}
	return edgelink.Membership{Cluster: kept.Cluster, Index: kept.Index, Edges: kept.Edges}
}

func (k memory) read() (*keptEdges, error) {
	info, err := os.Stat(k.path())
	if err != nil {
		return nil, err
	}
	if info.Size() > keptMax {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", info.Size(), keptMax)
	}
	b, err := os.ReadFile(k.path())
	if err != nil {
		return nil, err
	}
	var kept keptEdges
	if err := json.Unmarshal(b, &kept); err != nil {
		return nil, err
	}
	if kept.Format != 1 {
		return nil, fmt.Errorf("it has format %d, this version reads 1", kept.Format)
	}
	return &kept, nil
}

// save writes the file in one step, so that a crash leaves the old one or the new one.
func (k memory) save(m edgelink.Membership, log *slog.Logger) {
	if k.dir == "" {
		return
	}
	if err := k.write(m); err != nil {
		log.Warn("the addresses of the cluster's edges can't be kept for the next start", "file", k.path(), "error", err)
	}
}

func (k memory) write(m edgelink.Membership) error {
	b, err := json.MarshalIndent(keptEdges{Format: 1, Cluster: m.Cluster, Index: m.Index, Edges: m.Edges}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(k.dir, "edges-*.tmp")
	if err != nil {
		return err
	}
	_, err = temp.Write(append(b, '\n'))
	if err == nil {
		err = temp.Sync()
	}
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), k.path())
	}
	if err != nil {
		_ = os.Remove(temp.Name())
	}
	return err
}
