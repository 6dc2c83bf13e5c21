package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// Raft's own times. A replica that is alone elects itself at once (see elect), so they only bound how long a write
// may hang.
const (
	electionTimeout = 2 * time.Second
	leaderLease     = 500 * time.Millisecond
	// hungWrite is how long a write may take before the store counts as failed.
	hungWrite = 2 * electionTimeout
)

var errNotLeading = errors.New("not the leader")

// raftLog is consensus by hashicorp/raft. Raft's metrics go nowhere: go-metrics has a sink that drops everything until
// somebody sets another one, and nobody does.
type raftLog struct {
	raft    *raft.Raft
	lead    atomic.Bool
	changed chan struct{}
	quit    chan struct{}
	done    chan struct{}
}

type raftParts struct {
	replica string
	logs    logFile
	snaps   raft.SnapshotStore
	machine stateMachine
	logger  *slog.Logger
	// trailing is how many entries raft keeps at least behind a snapshot; guard keeps more. With one entry in flight,
	// historyEntriesMin also keep a follower that falls behind during a snapshot from needing another one for ever.
	trailing uint64
}

func raftConfig(p *raftParts) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(p.replica)
	c.Logger = newHclog(p.logger)
	c.HeartbeatTimeout = electionTimeout + time.Millisecond // elect lowers it
	c.ElectionTimeout = electionTimeout + time.Millisecond
	c.LeaderLeaseTimeout = leaderLease
	c.TrailingLogs = p.trailing
	c.SnapshotInterval = 365 * 24 * time.Hour // the store decides when, see snapshotter
	c.SnapshotThreshold = 1 << 62
	c.NoLegacyTelemetry = true
	return c
}

// bootstrapRaft makes this replica the only voter of a new cluster.
func bootstrapRaft(p *raftParts) error {
	_, transport := raft.NewInmemTransport(raft.ServerAddress(p.replica))
	members := raft.Configuration{Servers: []raft.Server{{
		ID: raft.ServerID(p.replica), Address: raft.ServerAddress(p.replica), Suffrage: raft.Voter,
	}}}
	return raft.BootstrapCluster(raftConfig(p), p.logs, p.logs, p.snaps, transport, members)
}

// startRaft opens the log and starts to take part. The state machine is called from now on.
func startRaft(p *raftParts) (*raftLog, error) {
	_, transport := raft.NewInmemTransport(raft.ServerAddress(p.replica))
	r, err := raft.NewRaft(raftConfig(p), &raftMachine{p.machine}, p.logs, p.logs, p.snaps, transport)
	if err != nil {
		return nil, err
	}
	l := &raftLog{raft: r, changed: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	go l.follow()
	return l, l.elect()
}

// elect has a replica that is alone stand for election at once: lowering the heartbeat timeout makes a follower look
// at its timer, and it has never heard of a leader.
func (l *raftLog) elect() error {
	c := l.raft.ReloadableConfig()
	c.HeartbeatTimeout, c.ElectionTimeout = electionTimeout, electionTimeout
	if err := l.raft.ReloadConfig(c); err != nil {
		return fmt.Errorf("configure raft: %w", err)
	}
	return nil
}

// follow keeps the role; it never calls raft.
func (l *raftLog) follow() {
	defer close(l.done)
	for {
		select {
		case lead := <-l.raft.LeaderCh():
			l.lead.Store(lead)
			select {
			case l.changed <- struct{}{}:
			default:
			}
		case <-l.quit:
			return
		}
	}
}

func (l *raftLog) propose(entry []byte) error {
	if !l.lead.Load() {
		return errNotLeading
	}
	return l.raft.Apply(entry, 0).Error()
}

func (l *raftLog) barrier() error           { return l.raft.Barrier(0).Error() }
func (l *raftLog) term() uint64             { return l.raft.CurrentTerm() }
func (l *raftLog) leading() bool            { return l.lead.Load() }
func (l *raftLog) changes() <-chan struct{} { return l.changed }
func (l *raftLog) lastIndex() uint64        { return l.raft.LastIndex() }

func (l *raftLog) snapshot() error {
	err := l.raft.Snapshot().Error()
	if errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil
	}
	return err
}

func (l *raftLog) stop(ctx context.Context) error {
	stopped := make(chan error, 1)
	go func() { stopped <- l.raft.Shutdown().Error() }() // ends with raft, or with the process if a write hangs for ever
	var err error
	select {
	case err = <-stopped:
	case <-ctx.Done():
		err = fmt.Errorf("stop raft: %w", ctx.Err())
	}
	l.lead.Store(false)
	close(l.quit)
	<-l.done
	return err
}

// raftMachine makes a stateMachine what raft wants.
type raftMachine struct{ machine stateMachine }

func (m *raftMachine) Apply(l *raft.Log) any {
	m.machine.apply(l.Index, l.Term, l.Data)
	return nil
}

func (m *raftMachine) Snapshot() (raft.FSMSnapshot, error) {
	c, err := m.machine.capture()
	if err != nil {
		return nil, err
	}
	return raftCapture{c}, nil
}

func (m *raftMachine) Restore(r io.ReadCloser) error { return m.machine.restore(r) }

type raftCapture struct{ capture }

func (c raftCapture) Persist(sink raft.SnapshotSink) error { return c.write(sink) }

func (raftCapture) Release() {}
