package enroll

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"iop/configs"
)

// Options are what Join needs.
type Options struct {
	Edge   string // URL of the edge's openai listener; required
	Token  string // join token; required
	Config string // node file to write; required
	// Plaintext accepts that the join token goes to another machine without TLS.
	Plaintext bool
	Env       configs.Env // for ${NAME} in a node file that is there already
	// Client asks the edge; nil = one that follows no redirect.
	Client *http.Client
	// Wait is how long an edge that can't be reached, or can't answer now, is asked again; 0 = 60 s.
	Wait time.Duration
}

// Result is what was done.
type Result struct {
	Node   string
	Edges  []string
	Config string // the file that was written
	CA     string // the authority's file, "" = none was needed
	// ClientCert: the edges ask for a certificate (node.tls.cert and key), which is not in the file yet.
	ClientCert bool
	Old        string // where the node file that was there before is kept, "" = there was none
}

// attempt is what a machine must not lose between asking and writing: the token that it has shown the hash of.
type attempt struct {
	JoinSHA256 string `json:"join_token_sha256"`
	Token      string `json:"token"`
}

// attemptSuffix names the file of the attempt, beside the node file.
const attemptSuffix = ".joining"

// Join makes this machine a node. The node file is written with mode 0600 and has been checked when it returns.
func Join(ctx context.Context, o Options) (*Result, error) {
	if o.Edge == "" || o.Token == "" || o.Config == "" {
		return nil, errors.New("join: an edge, a join token and a file for the configuration are needed")
	}
	if err := o.checkPlain(ctx); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(o.Config), 0o755); err != nil {
		return nil, fmt.Errorf("make the directory of the node file: %w", err)
	}
	kept, err := readOld(o.Config)
	if err != nil {
		return nil, err
	}
	mine, err := begin(o.Config+attemptSuffix, o.Token)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256([]byte(mine.Token))
	w, err := o.ask(ctx, hex.EncodeToString(hash[:]))
	if err != nil {
		return nil, err
	}
	r, err := write(o.Config, w, mine.Token, kept)
	if err != nil {
		return nil, err
	}
	if _, _, err := configs.LoadNode(o.Config, o.Env); err != nil {
		return nil, fmt.Errorf("the node file that was written is not right: %w", err)
	}
	if err := os.Remove(o.Config + attemptSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove what was kept of the attempt: %w", err)
	}
	return r, nil
}

// begin gives the attempt of before with the same join token, or a new one that is on disk.
func begin(path, joinToken string) (*attempt, error) {
	sum := sha256.Sum256([]byte(joinToken))
	joinHash := hex.EncodeToString(sum[:])
	a := &attempt{}
	data, err := os.ReadFile(path)
	switch {
	case err == nil && json.Unmarshal(data, a) == nil && a.JoinSHA256 == joinHash && a.Token != "":
		return a, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read the attempt of before: %w", err)
	}
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	a = &attempt{JoinSHA256: joinHash, Token: "iop_" + base64.RawURLEncoding.EncodeToString(random[:])}
	if data, err = json.Marshal(a); err != nil {
		return nil, err
	}
	return a, replace(path, data)
}
