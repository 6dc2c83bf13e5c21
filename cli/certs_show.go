package cli

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// renewBefore is how early a certificate should be renewed.
const renewBefore = 30 * 24 * time.Hour

func newCertsShow(g *globals) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "show",
		Short: "List the certificates, their names and how long they are good for",
		Long: `List the certificates of a directory, what they name and how long they are good for. It exits with 1 if one has ended or ends
within 30 days, is not signed by the authority there, or has a key that is not its own.`,
		Args: exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := listCerts(dir, time.Now())
			if err != nil {
				return err
			}
			if err := g.print(c, certList{Certs: list}, func(p *page) { showCerts(p, list) }); err != nil {
				return err
			}
			bad := 0
			for i := range list {
				if list[i].Problem != "" {
					bad++
				}
			}
			if bad > 0 {
				return &faultError{code: ExitFailure, err: fmt.Errorf("%d of %d certificates need care", bad, len(list)), cure: "renew them: iopctl certs edge|node ID --renew"}
			}
			return nil
		},
	}
	c.Flags().StringVar(&dir, "dir", certsDir, "`directory` of the certificates")
	return c
}

// certList is the JSON of certs show.
type certList struct {
	Certs []certShown `json:"certs"`
}

// certShown is a certificate in the JSON of certs show.
type certShown struct {
	Kind    string    `json:"kind"` // authority, edge, node
	ID      string    `json:"id"`
	File    string    `json:"file"`
	Names   []string  `json:"names"`
	Until   time.Time `json:"until"`
	Days    int       `json:"days_left"`
	Problem string    `json:"problem"`
}

func listCerts(dir string, now time.Time) ([]certShown, error) {
	authority, err := readPair(authorityPair(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &faultError{code: ExitFailure, err: fmt.Errorf("there is no authority in %s", dir), cure: "make one: iopctl certs init --dir " + dir}
	}
	if err != nil {
		return nil, err
	}
	list := []certShown{shownCert("authority", "", authorityPair(dir).cert, authority.cert, now)}
	for _, k := range []kind{kindEdge, kindNode} {
		entries, err := os.ReadDir(filepath.Join(dir, string(k)+"s"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list certificates: %w", err)
		}
		for _, e := range entries {
			if e.IsDir() {
				list = append(list, issuedCert(dir, k, e.Name(), authority.cert, now))
			}
		}
	}
	return list, nil
}

func issuedCert(dir string, k kind, id string, authority *x509.Certificate, now time.Time) certShown {
	at := issuedPair(dir, k, id)
	p, err := readPair(at)
	if err != nil {
		return certShown{Kind: string(k), ID: id, File: at.cert, Names: []string{}, Problem: err.Error()}
	}
	s := shownCert(string(k), id, at.cert, p.cert, now)
	switch {
	case s.Problem != "":
	case p.cert.CheckSignatureFrom(authority) != nil:
		s.Problem = "not signed by the authority here"
	case !slices.Contains(p.cert.DNSNames, id):
		s.Problem = "does not name " + id
	}
	return s
}

func shownCert(k, id, file string, c *x509.Certificate, now time.Time) certShown {
	left := c.NotAfter.Sub(now)
	s := certShown{Kind: k, ID: id, File: file, Names: certNames(c), Until: c.NotAfter.UTC(), Days: int(left / (24 * time.Hour))}
	switch {
	case left <= 0:
		s.Problem = "has ended"
	case now.Before(c.NotBefore):
		s.Problem = "is not good yet; is the clock right?"
	case left < renewBefore:
		s.Problem = "ends soon"
	}
	return s
}

func showCerts(p *page, list []certShown) {
	t := &table{columns: []column{
		{name: "KIND"}, {name: "ID"}, {name: "NAMES"}, {name: "UNTIL"}, {name: "DAYS LEFT", right: true}, {name: "PROBLEM"}, {name: "FILE", wide: true},
	}}
	for i := range list {
		s := &list[i]
		until, days := cell{text: day(s.Until)}, cell{text: fmt.Sprint(s.Days)}
		if s.Until.IsZero() {
			until, days = cell{}, cell{}
		}
		problem := cell{text: s.Problem, paint: paintBad}
		t.rows = append(t.rows, cells(s.Kind, s.ID, strings.Join(s.Names, ", "), until, days, problem, s.File))
	}
	p.table(t)
}
