package storage

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// peers is what the leader knows of the others from their answers, and tells them of commits: raft itself does so only
// with the next entry, or after some 50 ms; what a follower's clients wait for would come that much later. An empty
// AppendEntries right after the leader has applied an entry is legal Raft and costs nothing while nothing is proposed.
type peers struct {
	self  string
	send  func(id string, args *raft.AppendEntriesRequest) // set before raft starts
	group sync.WaitGroup

	last atomic.Pointer[committed] // the entry that the leader applied last; nil = none yet

	mu     sync.Mutex
	closed bool
	known  map[string]*peer
}

// committed names an entry of the leader's own term.
type committed struct{ index, term uint64 }

// peer is another replica.
type peer struct {
	id      string
	kick    chan struct{}
	contact atomic.Uint64 // counts its answers

	mu      sync.Mutex
	term    uint64 // of the leader that the next two are about
	match   uint64 // its log is the leader's up to here
	commits uint64 // it was told that entries up to here are committed
}

func newPeers(self string) *peers { return &peers{self: self, known: map[string]*peer{}} }

// of returns a peer; nil once all has stopped.
func (p *peers) of(id string) *peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.known[id]
	if x == nil && !p.closed && id != p.self {
		x = &peer{id: id, kick: make(chan struct{}, 1)}
		p.known[id] = x
		p.group.Go(func() { p.tell(x) })
	}
	return x
}

// keep forgets peers that are no members.
func (p *peers) keep(members []Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, x := range p.known {
		if find(members, id) < 0 {
			delete(p.known, id)
			close(x.kick)
		}
	}
}

func (p *peers) stop() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.keep(nil)
	p.group.Wait()
}

// contacts returns how often a peer has answered.
func (p *peers) contacts(id string) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.known[id]; x != nil {
		return x.contact.Load()
	}
	return 0
}

func (p *peers) heard(id string) {
	if x := p.of(id); x != nil {
		x.contact.Add(1)
	}
}

// answered takes a peer's answer into account.
func (p *peers) answered(id string, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) {
	x := p.of(id)
	if x == nil {
		return
	}
	x.contact.Add(1)
	if !resp.Success || args.PrevLogEntry == 0 && len(args.Entries) == 0 { // a heartbeat says nothing of the log
		return
	}
	x.mu.Lock()
	if x.term != args.Term {
		x.term, x.match, x.commits = args.Term, 0, 0
	}
	x.match = max(x.match, args.PrevLogEntry+uint64(len(args.Entries)))
	x.commits = max(x.commits, args.LeaderCommitIndex)
	x.mu.Unlock()
	p.nudge(x)
}

// applied tells the peers that the leader has applied an entry of its own term. It never blocks.
func (p *peers) applied(index, term uint64) {
	p.last.Store(&committed{index, term})
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.known {
		p.nudgeLocked(x)
	}
}

func (p *peers) nudge(x *peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known[x.id] == x {
		p.nudgeLocked(x)
	}
}

func (p *peers) nudgeLocked(x *peer) {
	if p.due(x) != nil {
		select {
		case x.kick <- struct{}{}:
		default:
		}
	}
}

// due returns the entry of which a peer should know that it is committed; nil = none.
func (p *peers) due(x *peer) *committed {
	last := p.last.Load()
	if last == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.term != last.term || x.match < last.index || x.commits >= last.index {
		return nil
	}
	return last
}

// tell is one peer's goroutine.
func (p *peers) tell(x *peer) {
	for range x.kick {
		if c := p.due(x); c != nil {
			p.send(x.id, &raft.AppendEntriesRequest{Term: c.term, PrevLogEntry: c.index, PrevLogTerm: c.term, LeaderCommitIndex: c.index})
		}
	}
}
