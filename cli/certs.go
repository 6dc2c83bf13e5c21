package cli

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func newCerts(g *globals) *cobra.Command {
	c := newGroup("certs", "Make a private CA and certificates for a small cluster")
	c.Long = `Make a private certificate authority (CA) and the certificates of edges and nodes, as files in one directory:

  ca.pem, ca-key.pem                     the authority; its key stays here and nowhere else
  edges/ID/cert.pem, key.pem, ca.pem     of an edge, to be copied to its machine
  nodes/ID/cert.pem, key.pem, ca.pem     of a node

The daemons read the files anew at each handshake, so a renewed certificate needs no restart.`
	c.Example = `  iopctl certs init
  iopctl certs edge edge-1 --host gw1.lan --host 10.0.0.1
  iopctl certs node gpu-node
  iopctl certs show
  iopctl certs edge edge-1 --renew`
	c.AddCommand(newCertsInit(g), newCertsIssue(g, kindEdge), newCertsIssue(g, kindNode), newCertsShow(g))
	return c
}

// certsDir is where certificates are kept if nothing else is said.
const certsDir = "certs"

// How long certificates are good for, in days.
const (
	authorityDays = 3650
	issuedDays    = 365
	daysMax       = 36500
)

// certFlags are those of the commands that make something.
type certFlags struct {
	dir   string
	hosts []string
	days  int
	renew bool
	force bool
	keep  bool
}

func (f *certFlags) register(c *cobra.Command, days int) {
	c.Flags().StringVar(&f.dir, "dir", certsDir, "`directory` of the certificates")
	c.Flags().IntVar(&f.days, "days", days, "how long it is good for")
	c.Flags().BoolVar(&f.renew, "renew", false, "make a new certificate for the key that is there, with the names it has")
	c.Flags().BoolVar(&f.force, "force", false, "replace what is there, key and all")
	c.Flags().BoolVar(&f.keep, "keep", false, "leave alone what is there, and be content with it: for scripts that run again")
}

func (f *certFlags) check(c *cobra.Command) error {
	switch {
	case f.days < 1 || f.days > daysMax:
		return usage(c, fmt.Errorf("--days %d is not from 1 to %d", f.days, daysMax))
	case f.renew && f.force:
		return usage(c, errors.New("--renew keeps the key and --force replaces it: give one of them"))
	case f.keep && (f.renew || f.force):
		return usage(c, errors.New("--keep changes nothing that is there: give it without --renew and --force"))
	}
	return nil
}

// kept tells whether a pair is there and is to stay as it is; it says so then.
func (f *certFlags) kept(c *cobra.Command, g *globals, at pairPath) (bool, error) {
	if !f.keep {
		return false, nil
	}
	p, err := readPair(at)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	made := &certMade{
		Cert: at.cert, Key: at.key, CA: filepath.Join(filepath.Dir(at.cert), authorityFile), Names: certNames(p.cert), Until: p.cert.NotAfter.UTC(),
	}
	return true, g.print(c, made, func(p *page) { p.line("kept %s, good until %s", made.Cert, day(made.Until)) })
}

func (f *certFlags) until() time.Time {
	return time.Now().Add(time.Duration(f.days) * 24 * time.Hour).UTC().Truncate(time.Second)
}

// certMade is the JSON of what makes a certificate.
type certMade struct {
	Cert  string    `json:"cert"`
	Key   string    `json:"key"`
	CA    string    `json:"ca"`
	Names []string  `json:"names"`
	Until time.Time `json:"until"`
}

func newCertsInit(g *globals) *cobra.Command {
	var f certFlags
	c := &cobra.Command{
		Use:   "init",
		Short: "Make the authority that signs all others",
		Long: `Make the authority that signs the certificates of edges and nodes. With --renew it gets a new certificate for its old key, and
what it signed stays good; ca.pem has to be copied again. With --force it gets a new key, and all that it signed is void.`,
		Args: exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(c); err != nil {
				return err
			}
			if kept, err := f.kept(c, g, authorityPair(f.dir)); kept || err != nil {
				return err
			}
			made, err := makeAuthority(&f)
			if err != nil {
				return err
			}
			return g.print(c, made, func(p *page) {
				p.line("made %s, good until %s", made.CA, day(made.Until))
				p.line("keep %s to yourself: who has it can pass for every edge and node", made.Key)
				p.line("next: iopctl certs edge ID --host NAME-OR-IP, iopctl certs node ID")
			})
		},
	}
	f.register(c, authorityDays)
	return c
}

// kind is what a certificate is for.
type kind string

const (
	kindEdge kind = "edge"
	kindNode kind = "node"
)

func newCertsIssue(g *globals, k kind) *cobra.Command {
	var f certFlags
	c := &cobra.Command{
		Use:  string(k) + " ID",
		Args: exactly(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(c); err != nil {
				return err
			}
			if !certID.MatchString(args[0]) || len(args[0]) > certIDMax {
				return usage(c, fmt.Errorf("%q is not the id of an %s: letters, digits and . _ - only, at most %d", args[0], k, certIDMax))
			}
			if kept, err := f.kept(c, g, issuedPair(f.dir, k, args[0])); kept || err != nil {
				return err
			}
			made, err := makeCert(&f, k, args[0])
			if err != nil {
				return err
			}
			return g.print(c, made, func(p *page) { tellMade(p, k, args[0], made, len(f.hosts) == 0 && !f.renew) })
		},
	}
	f.register(c, issuedDays)
	if k == kindEdge {
		c.Short = "Make the certificate of an edge"
		c.Long = `Make the certificate of an edge. It names the edge's id, for the other replicas, and the hosts that nodes and operators
dial (--host, names or IP addresses; localhost is always there). It is good for servers and for clients.`
		c.Flags().StringSliceVar(&f.hosts, "host", nil, "`name` or IP address that others dial; can be repeated")
	} else {
		c.Short = "Make the certificate of a node"
		c.Long = `Make the certificate of a node, which edges ask for if edge.tls.client_ca is set, beside the node's token. It is good for
clients only, so that a node cannot pass for an edge.`
	}
	return c
}

// certIDMax is what a name in a certificate can have, in bytes.
const certIDMax = 63

var certID = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9_-])?$`)

func tellMade(p *page, k kind, id string, m *certMade, hostless bool) {
	p.line("made %s for %s, good until %s", m.Cert, strings.Join(m.Names, ", "), day(m.Until))
	p.line("copy %s to its machine, readable by the daemon alone, and write into its file:", filepath.Dir(m.Cert))
	p.line("")
	if k == kindNode {
		p.line("node:")
		p.line("  tls: { enabled: true, ca: %q, cert: %q, key: %q }", m.CA, m.Cert, m.Key)
		return
	}
	p.line("edge:")
	p.line("  tls:")
	p.line("    cert: %q", m.Cert)
	p.line("    key: %q", m.Key)
	p.line("    client_ca: %q   # nodes must show certificates too; leave it out if their tokens are enough", m.CA)
	p.line("  cluster:")
	p.line("    ca: %q          # who signs the other replicas", m.CA)
	if hostless {
		p.line("")
		p.line("nodes on other machines dial it by a name that is not in it: add that with --host, or set node.tls.server_name: %s", id)
	}
}

// makeAuthority makes or renews the authority of a directory.
func makeAuthority(f *certFlags) (*certMade, error) {
	at := authorityPair(f.dir)
	a, err := at.prepare(f, "the authority")
	if err != nil {
		return nil, err
	}
	cert, err := a.selfSigned(f.until())
	if err != nil {
		return nil, err
	}
	if err := at.write(cert, a.key, !f.renew); err != nil {
		return nil, err
	}
	if f.renew {
		if err := spreadAuthority(f.dir); err != nil {
			return nil, err
		}
	}
	return &certMade{Cert: at.cert, Key: at.key, CA: at.cert, Names: []string{}, Until: cert.NotAfter.UTC()}, nil
}

// makeCert makes or renews the certificate of an edge or node.
func makeCert(f *certFlags, k kind, id string) (*certMade, error) {
	authority, err := readPair(authorityPair(f.dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &faultError{code: ExitFailure, err: fmt.Errorf("there is no authority in %s", f.dir), cure: "make one: iopctl certs init --dir " + f.dir}
	}
	if err != nil {
		return nil, err
	}
	at := issuedPair(f.dir, k, id)
	p, err := at.prepare(f, "a certificate")
	if err != nil {
		return nil, err
	}
	dns, ips := namesOf(k, id, f.hosts, p.cert)
	cert, err := p.signedBy(authority, k, id, dns, ips, f.until())
	if err != nil {
		return nil, err
	}
	if err := at.write(cert, p.key, !f.renew); err != nil {
		return nil, err
	}
	ca := filepath.Join(filepath.Dir(at.cert), authorityFile)
	if err := writePEM(ca, pemCert, authority.cert.Raw); err != nil {
		return nil, err
	}
	return &certMade{Cert: at.cert, Key: at.key, CA: ca, Names: certNames(cert), Until: cert.NotAfter.UTC()}, nil
}

// namesOf are the names that a certificate is to have: those given and, of one that is renewed, those it has.
func namesOf(k kind, id string, hosts []string, old *x509.Certificate) (dns []string, ips []net.IP) {
	all := []string{id}
	if old != nil {
		all = append(all, certNames(old)...)
	}
	if k == kindEdge {
		all = append(append(all, hosts...), "localhost", "127.0.0.1", "::1")
	}
	seen := map[string]bool{}
	for _, name := range all {
		ip := net.ParseIP(name)
		if ip != nil {
			name = ip.String()
		}
		switch {
		case seen[name]:
		case ip != nil:
			ips = append(ips, ip)
		default:
			dns = append(dns, name)
		}
		seen[name] = true
	}
	return dns, ips
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02") }

// spreadAuthority copies a renewed authority beside the certificates that it signed.
func spreadAuthority(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, authorityFile))
	if err != nil {
		return fmt.Errorf("read the authority: %w", err)
	}
	copies, err := filepath.Glob(filepath.Join(dir, "*", "*", authorityFile))
	if err != nil {
		return fmt.Errorf("find the copies of the authority: %w", err)
	}
	for _, path := range copies {
		if err := writePrivate(path, raw); err != nil {
			return err
		}
	}
	return nil
}
