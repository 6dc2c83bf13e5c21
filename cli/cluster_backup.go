package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"iop/storage"
)

func newClusterBackup(g *globals, version string) *cobra.Command {
	var to string
	var off offlineOptions
	c := &cobra.Command{
		Use:   "backup",
		Short: "Write the state of a running replica, or of a stopped one's directory, to a file",
		Long: `Write the state that a replica has, of one index, to a file, while it goes on. Any replica will do: its own state is taken, which the
index tells. The file is verified before it gets its name; only its owner can read it. It holds hashes of tokens and what is in the
configuration, no raw tokens of clients; and stored responses, which are texts of clients.`,
		Example: `  iopctl cluster backup -o iop.backup
  iopctl cluster backup -o - | age -r KEY > iop.backup.age
  iopctl cluster backup --data-dir /var/lib/iop -o iop.backup   # of a stopped replica`,
		Args: exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			b, err := g.takeBackup(c, &off, to, version)
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			if to == "-" {
				w = c.ErrOrStderr()
			}
			_, err = fmt.Fprintf(w, "%s\n", printable(fmt.Sprintf("Backup of replica %s at index %d (cluster %s), %d bytes: %s", b.info.Replica, b.info.Index, b.info.Cluster, b.size, b.file)))
			return err
		},
	}
	c.Flags().StringVarP(&to, "output", "o", "", "`file` to write, - for standard output (default iop-INDEX.backup)")
	off.register(c)
	return c
}

// backedUp is a backup that was verified.
type backedUp struct {
	info storage.BackupInfo
	size int64
	file string
}

// takeBackup writes to a temporary file first: only what was verified gets a name.
func (g *globals) takeBackup(c *cobra.Command, off *offlineOptions, to, version string) (b *backedUp, err error) {
	dir := filepath.Dir(to)
	if to == "-" {
		dir = ""
	}
	f, err := os.CreateTemp(dir, ".iop-backup-*.tmp") // 0600
	if err != nil {
		return nil, fmt.Errorf("write the backup: %w", err)
	}
	defer func() {
		err = errors.Join(err, ignoreClosed(f.Close()))
		_ = os.Remove(f.Name()) // it has its name, or is of no use
	}()
	if err := g.fetchBackup(c, off, version, f); err != nil {
		return nil, err
	}
	b = &backedUp{file: "standard output"}
	if b.size, err = f.Seek(0, io.SeekStart); err == nil {
		_, b.info, err = storage.ReadBackup(f)
	}
	if err != nil {
		return nil, &faultError{code: ExitFailure, err: err, cure: "it broke off on the way: try again"}
	}
	if b.size, err = f.Seek(0, io.SeekEnd); err != nil {
		return nil, fmt.Errorf("write the backup: %w", err)
	}
	if to == "-" {
		if _, err = f.Seek(0, io.SeekStart); err == nil {
			_, err = io.Copy(c.OutOrStdout(), f)
		}
		return b, err
	}
	if b.file = to; to == "" {
		b.file = fmt.Sprintf("iop-%d.backup", b.info.Index)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return nil, fmt.Errorf("write the backup: %w", err)
	}
	if err := os.Rename(f.Name(), b.file); err != nil {
		return nil, fmt.Errorf("write the backup: %w", err)
	}
	return b, nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

func (g *globals) fetchBackup(c *cobra.Command, off *offlineOptions, version string, f *os.File) error {
	if off.dataDir != "" {
		p := g.progress(c, "waiting for the backup")
		defer p.done()
		_, err := storage.BackupDirectory(off.dataDir, version, io.MultiWriter(f, &counter{p: p, verb: "backing up"}))
		return err
	}
	if !c.Flags().Changed("timeout") {
		g.timeout = 0 // it takes as long as it takes
	}
	client, err := g.client(c)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := c.Context(), context.CancelFunc(func() {})
	if g.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, g.timeout)
	}
	defer cancel()
	p := g.progress(c, "waiting for the backup")
	defer p.done()
	return client.Backup(ctx, io.MultiWriter(f, &counter{p: p, verb: "backing up"}))
}

func newClusterRestore(g *globals, version string) *cobra.Command {
	var dir, replica string
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a data directory of a new cluster from a backup",
		Long: `Make the data directory of a new cluster from a backup; FILE may be - for standard input. Its only voter is the replica named; others
are added once it runs. The cluster gets a new id, so that no replica of the old one can mix with it.

What the old edges had under way ends by the rules for a lost session: what waits keeps its place for the reattach window, what ran is
counted until its node says how it ended or the fence timeout is over. The directory must be empty or missing.`,
		Example: "  iopctl cluster restore iop.backup --data-dir /var/lib/iop --replica edge-1",
		Args:    exactly(1),
		RunE: func(c *cobra.Command, args []string) error {
			if dir == "" || replica == "" {
				return usage(c, errors.New("--data-dir and --replica are needed: those of the edge file (edge.data_dir, edge.id)"))
			}
			from, err := openBackup(c, args[0])
			if err != nil {
				return err
			}
			defer func() { _ = from.Close() }()
			p := g.progress(c, "restoring")
			r, err := storage.Restore(io.TeeReader(from, &counter{p: p, verb: "restoring"}), dir, replica, version)
			p.done()
			if err != nil {
				return &faultError{code: ExitFailure, err: err, cure: restoreCure(err)}
			}
			return g.print(c, rebuiltOf(r), func(p *page) { showRestored(p, r) })
		},
	}
	c.Flags().StringVar(&dir, "data-dir", "", "`directory` to make, edge.data_dir of the edge file")
	c.Flags().StringVar(&replica, "replica", "", "`id` of the replica, edge.id of the edge file")
	c.Flags().Bool("new-cluster", true, "it is always a new cluster; say it to be clear")
	_ = c.MarkFlagDirname("data-dir") // the flag just made
	return c
}

func restoreCure(err error) string {
	switch {
	case errors.Is(err, storage.ErrNewer):
		return "use iopctl and edged of that version or a newer one"
	case errors.Is(err, storage.ErrDamaged):
		return "use another backup; nothing was written"
	}
	return "nothing of the backup was used up; correct it and try again"
}

func openBackup(c *cobra.Command, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(c.InOrStdin()), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, &faultError{code: ExitFailure, err: fmt.Errorf("open the backup: %w", err), cure: "name a file that 'iopctl cluster backup' wrote"}
	}
	return f, nil
}

func newClusterRecover(g *globals, version string) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "recover",
		Short: "Make a stopped replica the only voter, when the others are lost for good",
		Long: `Make a stopped replica the only voter of a new cluster with its state. It is for the case that the majority is lost for good: what only
the others had confirmed is lost with them. If they can come back, start them instead.

If several replicas survived, recover the one that is furthest: 'iopctl debug log --data-dir DIR --limit 1' shows its last entry. The
directory as it was is kept beside it. The other replicas must not be started with their old directories any more: the new cluster
refuses them.`,
		Args: exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if dir == "" {
				return usage(c, errors.New("--data-dir is needed: that of the surviving replica"))
			}
			r, err := storage.Recover(c.Context(), dir, version)
			if err != nil {
				return err
			}
			return g.print(c, rebuiltOf(r), func(p *page) { showRecovered(p, r) })
		},
	}
	c.Flags().StringVar(&dir, "data-dir", "", "data `directory` of the surviving replica, stopped")
	_ = c.MarkFlagDirname("data-dir") // the flag just made
	return c
}

// rebuilt is the JSON of a directory that was made.
type rebuilt struct {
	Dir           string    `json:"data_dir"`
	Replica       string    `json:"replica"`
	Cluster       string    `json:"cluster"`
	Was           string    `json:"was_cluster"`
	Index         uint64    `json:"index"`
	Term          uint64    `json:"term"`
	LastEntry     time.Time `json:"last_entry"`
	SessionsEnded []string  `json:"sessions_ended"`
	Leases        int       `json:"leases"`
	Waiters       int       `json:"waiters"`
	Members       []string  `json:"was_members"`
	Kept          string    `json:"kept,omitempty"`
}

func rebuiltOf(r *storage.Rebuilt) *rebuilt {
	out := &rebuilt{
		Dir: r.Dir, Replica: r.Replica, Cluster: r.Cluster, Was: r.Was, Index: r.Index, Term: r.Term, LastEntry: r.Wall,
		SessionsEnded: []string{}, Leases: r.Leases, Waiters: r.Waiters, Members: []string{}, Kept: r.Kept,
	}
	for _, e := range r.Sessions {
		out.SessionsEnded = append(out.SessionsEnded, string(e))
	}
	for _, m := range r.Members {
		out.Members = append(out.Members, m.ID)
	}
	return out
}

func showRestored(p *page, r *storage.Rebuilt) {
	p.line("%s is the data directory of replica %s, the only one of a new cluster.", r.Dir, r.Replica)
	showRebuilt(p, r)
	p.line("")
	p.line("Start edged with it, then take others in: iopctl cluster add ID ADDRESS")
}

func showRecovered(p *page, r *storage.Rebuilt) {
	p.line("Replica %s is the only voter of a new cluster with its state.", r.Replica)
	showRebuilt(p, r)
	members := rebuiltOf(r).Members
	p.fields([2]string{"It was one of", strings.Join(members, ", ")}, [2]string{"Kept as it was", r.Kept})
	p.line("")
	p.line("What the others confirmed after index %d, without this replica, is lost: requests admitted or ended since, and changes of the", r.Index)
	p.line("configuration. Compare with 'iopctl config show' after the start. Start the others only with empty data directories,")
	p.line("and with edge.cluster.peers that name this replica: one that is empty and names nobody begins a cluster of its own.")
}

func showRebuilt(p *page, r *storage.Rebuilt) {
	p.fields(
		[2]string{"State", fmt.Sprintf("index %d, term %d, last entry of %s", r.Index, r.Term, r.Wall.Format(time.RFC3339))},
		[2]string{"Cluster", fmt.Sprintf("%s (was %s)", r.Cluster, r.Was)},
		[2]string{"Under way then", fmt.Sprintf("%d leases, %d waiters", r.Leases, r.Waiters)},
	)
}
