package bootstrap

import (
	"crypto/sha256"
	_ "embed" // the scripts
	"encoding/hex"
	"strings"
)

// Names of the install scripts, under Prefix.
const (
	scriptSh = "install.sh"
	scriptPS = "install.ps1"
)

//go:embed install.sh
var templateSh string

//go:embed install.ps1
var templatePS string

// script puts the edge's address and the checksums of the builds into a script.
func (s *Server) script(name string) (string, error) {
	builds, err := s.shelf.list()
	if err != nil {
		return "", err
	}
	lines := make([]string, len(builds))
	for i, b := range builds {
		lines[i] = b.SHA256 + "  " + b.Name
	}
	text, quote := templateSh, "'\\''"
	if name == scriptPS {
		text, quote = templatePS, "''"
	}
	url := strings.ReplaceAll(s.o.URL, "'", quote)
	plaintext := ""
	if s.o.Plaintext {
		plaintext = "--plaintext"
	}
	return strings.NewReplacer("@URL@", url, "@SUMS@", strings.Join(lines, "\n"), "@PLAINTEXT@", plaintext).Replace(text), nil
}

// Offer says how a new machine comes by noded from here.
type Offer struct {
	URL       string // of this listener, as new machines reach it
	Sh        string // SHA-256 of install.sh as it is served now; "" = there are no builds
	PS        string // and of install.ps1
	Builds    []Build
	Problem   string // why there are no builds
	Plaintext bool   // machines beyond loopback may join without TLS
}

// Offer gives what operators are told.
func (s *Server) Offer() Offer {
	o := Offer{URL: s.o.URL, Plaintext: s.o.Plaintext}
	var err error
	if o.Builds, err = s.shelf.list(); err != nil {
		o.Problem = err.Error()
		return o
	}
	for name, into := range map[string]*string{scriptSh: &o.Sh, scriptPS: &o.PS} {
		text, err := s.script(name)
		if err != nil {
			o.Problem = err.Error()
			return o
		}
		sum := sha256.Sum256([]byte(text))
		*into = hex.EncodeToString(sum[:])
	}
	return o
}
