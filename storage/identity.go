package storage

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The layouts of a data directory: from sealedFormat on, everything in the log has a checksum (seal.go) and the log
// names the directory that it belongs to (binding.go). dirFormat is the newest that this program writes and reads.
const (
	sealedFormat = 2
	dirFormat    = 2
)

// identity is the file identity.json: what a data directory is and whose.
//
//	{"format": 2, "cluster": "9f…", "replica": "edge-1", "program": "v0.1.0", "state": "ready"}
//
// The state is "new" from before the log is made until the replica is a member; in between nothing can have been
// acknowledged, so a start that was interrupted there is begun again. Once "ready", the log must be there. For "forming"
// and "joining" see form.go.
type identity struct {
	Format  int    `json:"format"`
	Cluster string `json:"cluster"` // id, minted at the first start
	Replica string `json:"replica"`
	Program string `json:"program"` // that wrote to the directory last
	State   string `json:"state"`
}

const (
	stateNew   = "new"
	stateReady = "ready"
)

func knownState(s string) bool {
	return s == stateNew || s == stateReady || s == stateForming || s == stateJoining
}

func mintIdentity(replica, program string) (*identity, error) {
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return nil, fmt.Errorf("mint a cluster id: %w", err)
	}
	return &identity{
		Format: dirFormat, Cluster: hex.EncodeToString(id), Replica: replica, Program: program, State: stateNew,
	}, nil
}

// readIdentity returns nil if there is none.
func readIdentity(dir string) (*identity, error) {
	path := filepath.Join(dir, identityFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the data directory's identity: %w", err)
	}
	id := &identity{}
	if err := json.Unmarshal(b, id); err != nil {
		return nil, fmt.Errorf("%w: %s can't be read (%w); restore the directory from a backup", ErrDamaged, path, err)
	}
	if id.Format > dirFormat {
		return nil, fmt.Errorf("%w: %s has format %d, written by version %q; this one reads up to format %d: run that version or a newer one",
			ErrNewer, path, id.Format, id.Program, dirFormat)
	}
	if id.Format < 1 || id.Cluster == "" || id.Replica == "" || !knownState(id.State) {
		return nil, fmt.Errorf("%w: %s is incomplete; restore the directory from a backup", ErrDamaged, path)
	}
	return id, nil
}

// belongs refuses a directory of another replica.
func (id *identity) belongs(dir, replica string) error {
	if id.Replica == replica {
		return nil
	}
	return fmt.Errorf("%w: %s is that of replica %q, this is replica %q; give each replica its own data directory, or correct the replica id in the configuration",
		ErrWrongReplica, dir, id.Replica, replica)
}

func (id *identity) write(dir string) error {
	b, err := json.Marshal(id)
	if err != nil {
		return fmt.Errorf("encode the identity: %w", err)
	}
	return replaceFile(filepath.Join(dir, identityFile), append(bytes.TrimSpace(b), '\n'))
}

// replaceFile writes a file so that after a crash there is either the old one or the whole new one.
func replaceFile(path string, content []byte) error {
	temporary := path + temporarySuffix
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return syncDir(filepath.Dir(path))
}
