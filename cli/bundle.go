package cli

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
	"iop/storage"
)

// bundleOptions are the flags of debug bundle.
type bundleOptions struct {
	to      string
	dataDir string
	records int
}

// manifest is the first file of a bundle: what is in it, and what is not and why.
type manifest struct {
	MadeAt  time.Time      `json:"made_at"`
	Iopctl  build          `json:"iopctl"`
	Edges   []string       `json:"edges"`    // addresses that were asked
	DataDir string         `json:"data_dir"` // "" = none was read
	Files   []bundledFile  `json:"files"`
	Missing []missingFile  `json:"missing"`
	Removed map[string]int `json:"removed"` // secrets that were taken out, by kind; there should be none
}

// bundledFile is a file of a bundle.
type bundledFile struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
}

// missingFile is one that could not be had.
type missingFile struct {
	Name  string `json:"name"`
	Error string `json:"error"`
}

// bundled is the JSON of debug bundle.
type bundled struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	*manifest
}

func newDebugBundle(g *globals, version string) *cobra.Command {
	var o bundleOptions
	c := &cobra.Command{
		Use:   "bundle",
		Short: "Pack an archive for somebody who helps: state, queue, configuration, metrics, the log's end; no secrets",
		Long: `Pack what somebody needs who is to find out what is wrong, into a tar.gz: of each edge that is named status, providers, nodes, models,
leases, queue, configuration with its history, members, usage, rates, metrics and what its goroutines do; with --data-dir the state and
the last commands of the log of a replica, running or not. What can't be had is left out and named in manifest.json.

Tokens, keys and prompts are not in it: the pages have none, and what looks like one is taken out. Names are: of models, nodes, providers,
principals, addresses, and the ids that clients gave their requests. Look through it before you pass it on.

It exits with 0 if there is anything in it, else with 1.`,
		Example: `  iopctl debug bundle
  iopctl debug bundle --edge gw1:9080 --edge gw2:9080 --edge gw3:9080 -o iop.tar.gz
  iopctl debug bundle --data-dir /var/lib/iop -o iop.tar.gz`,
		Args: exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			b, err := g.bundle(c, &o, version)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), printable(bundleText(b)))
			return err
		},
	}
	f := c.Flags()
	f.StringVarP(&o.to, "output", "o", "", "`file` to write (default iop-bundle-TIME.tar.gz)")
	f.StringVar(&o.dataDir, "data-dir", "", "take the state and the log's end of this data `directory` in; edges are only asked then if --edge names some")
	f.IntVar(&o.records, "records", 2000, "how many commands of the log's end")
	_ = c.MarkFlagDirname("data-dir") // the flag just made
	return c
}

func bundleText(b *bundled) string {
	text := fmt.Sprintf("%s: %d files, %s", b.File, len(b.Files), size(b.Bytes))
	if n := len(b.Missing); n > 0 {
		text += fmt.Sprintf("; %d could not be had (see manifest.json in it), the first: %s: %s", n, b.Missing[0].Name, b.Missing[0].Error)
	}
	return text
}

// bundle gathers all in memory, then writes it: a file that is there is whole.
func (g *globals) bundle(c *cobra.Command, o *bundleOptions, version string) (*bundled, error) {
	if o.records < 1 {
		return nil, usage(c, fmt.Errorf("--records %d: it is 1 or more", o.records))
	}
	now := time.Now().UTC()
	p := g.progress(c, "gathering")
	defer p.done()
	b := &bundler{g: g, c: c, p: p, scrub: newScrubber(g), made: now}
	b.manifest = manifest{
		MadeAt: now, Iopctl: build{Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH},
		Edges: []string{}, DataDir: o.dataDir, Files: []bundledFile{}, Missing: []missingFile{},
	}
	if o.dataDir == "" || len(g.edges) > 0 || g.lookup("IOP_EDGE") != "" {
		if err := b.edges(); err != nil {
			return nil, err
		}
	}
	if o.dataDir != "" {
		b.directory(o)
	}
	if len(b.files) == 0 {
		return nil, b.nothing()
	}
	if o.to == "" {
		o.to = "iop-bundle-" + now.Format("20060102-150405") + ".tar.gz"
	}
	p.say("writing %s", o.to)
	n, err := b.write(o.to)
	if err != nil {
		return nil, fmt.Errorf("write the bundle: %w", err)
	}
	return &bundled{File: o.to, Bytes: n, manifest: &b.manifest}, nil
}

// bundler gathers files.
type bundler struct {
	g        *globals
	c        *cobra.Command
	p        *progress
	scrub    *scrubber
	made     time.Time
	manifest manifest
	files    [][]byte // as manifest.Files names them
	first    error    // why something is missing
}

func (b *bundler) add(name string, text []byte, err error) {
	if err != nil {
		if b.first == nil {
			b.first = err
		}
		b.manifest.Missing = append(b.manifest.Missing, missingFile{name, string(b.scrub.text([]byte(err.Error())))})
		return
	}
	text = b.scrub.file(name, text)
	b.files = append(b.files, text)
	b.manifest.Files = append(b.manifest.Files, bundledFile{name, len(text)})
}

func (b *bundler) addJSON(name string, data any, err error) {
	if err != nil {
		b.add(name, nil, err)
		return
	}
	text, err := jsonText(data)
	b.add(name, text, err)
}

// nothing is the error of a bundle without files: why the first is missing.
func (b *bundler) nothing() error {
	if b.first == nil {
		return errors.New("there is nothing to pack")
	}
	return fmt.Errorf("there is nothing to pack: %w", b.first)
}

// pages are what is asked of each edge: the file, and the path.
func pages() [][2]string {
	return [][2]string{
		{"status.json", "/status"},
		{"health.json", "/healthz"},
		{"providers.json", "/providers"},
		{"nodes.json", "/nodes"},
		{"models.json", "/models"},
		{"leases.json", "/leases"},
		{"queue.json", "/queue"},
		{"config.json", "/config"},
		{"config-history.json", "/config/history"},
		{"cluster.json", "/cluster"},
		{"usage.json", "/usage?by=day,model,provider"},
		{"pulse.json", "/pulse"},
		{"metrics.txt", "/metrics"},
		{"goroutines.txt", "/debug/goroutines"},
	}
}

// edges asks each edge that is named for itself.
func (b *bundler) edges() error {
	for i, address := range b.g.addresses() {
		client, err := b.g.clientOf(b.c, address)
		if err != nil {
			return err
		}
		b.manifest.Edges = append(b.manifest.Edges, address)
		b.edge(client, fmt.Sprintf("edge-%d", i+1), address)
		client.Close()
	}
	return nil
}

func (b *bundler) edge(client *adminapi.Client, dir, address string) {
	for _, x := range pages() {
		b.p.say("asking %s for %s", address, x[1])
		text, err := client.Raw(b.c.Context(), x[1])
		b.add(path.Join(dir, x[0]), text, err)
		var none *adminapi.UnreachableError
		if errors.As(err, &none) {
			return // it would be the same for all pages
		}
	}
}

// directory reads a replica's files; those of one that runs are copied.
func (b *bundler) directory(o *bundleOptions) {
	b.p.say("reading %s", o.dataDir)
	err := history(b.c, o.dataDir, func(past *storage.Past) error {
		info := past.Info()
		b.addJSON("data/info.json", info, nil)
		machine, err := past.At(b.c.Context(), 0)
		if err != nil {
			b.add("data/state", nil, err)
		} else {
			x := &offline{ctx: b.c.Context(), dir: o.dataDir, past: past, machine: machine}
			leases, err := x.leases()
			b.addJSON("data/leases.json", leases, err)
			queue, err := x.queue()
			b.addJSON("data/queue.json", queue, err)
			b.addJSON("data/config.json", adminapi.Config{Revision: uint64(machine.Revision()), Document: json.RawMessage(machine.Document())}, nil)
		}
		text, err := lastRecords(b.c.Context(), past, info.LastIndex, o.records)
		b.add("data/log.jsonl", text, err)
		return nil
	})
	if err != nil {
		b.add("data", nil, err)
	}
}

// lastRecords are the last n commands of a log as JSON lines.
func lastRecords(ctx context.Context, past *storage.Past, last uint64, n int) ([]byte, error) {
	from := uint64(1)
	if last > uint64(n) {
		from = last - uint64(n) + 1 // an entry has one command or more
	}
	lines := make([]string, 0, n)
	err := past.Log(ctx, storage.Filter{From: from}, func(r *storage.Record) error {
		text, err := json.Marshal(recordLine(r))
		if err != nil {
			return err
		}
		if len(lines) == n {
			lines = append(lines[:0], lines[1:]...)
		}
		lines = append(lines, string(text)+"\n")
		return nil
	})
	return []byte(strings.Join(lines, "")), err
}

// write makes the archive under another name first.
func (b *bundler) write(to string) (n int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(to), ".iop-bundle-*.tmp") // 0600
	if err != nil {
		return 0, err
	}
	defer func() {
		err = errors.Join(err, ignoreClosed(f.Close()))
		_ = os.Remove(f.Name()) // it has its name, or is of no use
	}()
	b.manifest.Removed = b.scrub.removed
	head, err := jsonText(b.manifest)
	if err != nil {
		return 0, err
	}
	z := gzip.NewWriter(f)
	t := tar.NewWriter(z)
	root := strings.TrimSuffix(filepath.Base(to), ".tar.gz")
	if err := b.put(t, path.Join(root, "manifest.json"), head); err != nil {
		return 0, err
	}
	for i, text := range b.files {
		if err := b.put(t, path.Join(root, b.manifest.Files[i].Name), text); err != nil {
			return 0, err
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if err := f.Close(); err != nil {
		return 0, err
	}
	return info.Size(), os.Rename(f.Name(), to)
}

func (b *bundler) put(t *tar.Writer, name string, text []byte) error {
	err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), ModTime: b.made, Format: tar.FormatPAX})
	if err != nil {
		return err
	}
	_, err = t.Write(text)
	return err
}
