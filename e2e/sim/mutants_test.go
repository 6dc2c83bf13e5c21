package sim

// mutants are the planted faults. Each is one that somebody could make, or made.
var mutants = []mutant{
	{
		name: "release is not idempotent", file: "fsm/lease.go", always: true,
		old: "	if r == nil || r.link.edge != s.edge ||",
		new: "	if r == nil {\n\t\tm.returned++\n\t\treturn Outcome{Code: Returned}\n\t}\n\tif r.link.edge != s.edge ||",
	},
	{
		name: "a stale generation is accepted", file: "fsm/link.go",
		old: "	if l == nil || l.session != s {",
		new: "	if l == nil {\n\t\tl = n.ready(s)\n\t}\n\tif l == nil || l.session != s {",
	},
	{
		name: "waiters are ordered by model", file: "fsm/queue.go", always: true,
		old: "if r := l.waiters.first(); best == nil || r.rank().before(best.rank()) {",
		new: "if r := l.waiters.first(); best == nil || r.model < best.model || r.model == best.model && r.rank().before(best.rank()) {",
	},
	{
		name: "expiry by wall clock", file: "fsm/expire.go",
		old: "if r == nil || Time(r.hooks[hookDeadline].key) > m.now {",
		new: "if r == nil || m.wall-r.enqueuedWall < int64(Time(r.hooks[hookDeadline].key)-r.enqueuedAt) {",
	},
	{
		name: "a detached waiter is granted", file: "fsm/session.go",
		old: "	m.edges[c.Edge] = s\n",
		new: "	m.edges[c.Edge] = s\n\tfor _, r := range m.waiters() {\n\t\tif r.state == StateDetached && r.lastEdge == c.Edge {\n\t\t\tm.reattach(r, s)\n\t\t}\n\t}\n",
	},
	{
		name: "requeue at the tail", file: "fsm/lease.go",
		old: "	return m.resume(r)\n",
		new: "	r.enqueue = m.nextEnqueue\n\tm.nextEnqueue++\n\treturn m.resume(r)\n",
	},
	{
		name: "the long slot is not returned on a fence", file: "fsm/lease.go",
		old: "	p.inFlight--\n	if r.class == ClassLong {",
		new: "	p.inFlight--\n	if r.class == ClassLong && r.state != StateFencing {",
	},
	{
		name: "outcomes are forgotten too early", file: "fsm/session.go",
		old: "s.batches[forget].Seq < s.ackBelow ||",
		new: "s.batches[forget].Seq <= s.ackBelow ||",
	},
	{
		name: "a duplicate registration is accepted", file: "fsm/node.go",
		old: "case n.instance != c.Instance:",
		new: "case n.instance != c.Instance && c.Instance == 0:",
	},
	{
		name: "a fence returns leases although another link is up", file: "fsm/link.go", always: true,
		old: "	if n.linked() || alive {\n",
		new: "	if n.linked() && why == ReasonNone || alive {\n",
	},
	{
		name: "re-attachment gives a new place", file: "fsm/admit.go",
		old: "	m.unwait(r)\n	r.session, r.lastEdge",
		new: "	m.unwait(r)\n	r.enqueue = m.nextEnqueue\n	m.nextEnqueue++\n	r.session, r.lastEdge",
	},
	{
		name: "the capacity is off by one", file: "fsm/provider.go",
		old: "p.inFlight >= p.Capacity {",
		new: "p.inFlight > p.Capacity {",
	},
	{
		name: "the queue's bound is off by one", file: "fsm/admit.go",
		old: "m.pending-m.background >= m.pool().MaxQueue",
		new: "m.pending-m.background > m.pool().MaxQueue",
	},
	{
		name: "an Expire of an old term counts", file: "fsm/expire.go",
		old: "if c.Term != m.term {",
		new: "if c.Term > m.term {",
	},
	{
		name: "a batch sent twice is done twice", file: "fsm/session.go",
		old: "		return old.Outcomes\n",
		new: "		return m.commands(s, b.Commands)\n",
	},
	{
		name: "a batch number may carry other commands", file: "fsm/session.go",
		old: "if old.Sum != b.Sum || len(old.Outcomes) != len(b.Commands) {",
		new: "if len(old.Outcomes) != len(b.Commands) {",
	},
	{
		name: "a report returns what still runs", file: "fsm/link.go",
		old: "if !slices.Contains(running, r.lease) {",
		new: "if len(running) < 2 || !slices.Contains(running, r.lease) {",
	},
	{
		name: "a lost link is taken for the end of its runs", file: "fsm/lease.go",
		old: " || r.state == StateFencing && c.Reason == ReasonLinkLost {",
		new: " {",
	},
	{
		name: "a registration speaks of other edges' links", file: "fsm/node.go",
		old: "if l.state == LinkFenced && l.edge == edge {",
		new: "if l.state == LinkFenced {",
	},
	{
		name: "waiters stay with a session that ended", file: "fsm/session.go",
		old: "			m.detach(r)\n",
		new: "			r.detachedUntil = m.now\n",
	},
	{
		name: "who comes again elsewhere while his edge is silent is behind his ghost", file: "fsm/session.go",
		old: "m.newcomers(ghosts, queue, since)",
		new: "m.newcomers(ghosts[:0], queue, since)",
	},
	{
		name: "who comes again elsewhere has a new deadline", file: "fsm/exchange.go",
		old: "	a.enqueuedAt, b.enqueuedAt = b.enqueuedAt, a.enqueuedAt\n",
		new: "",
	},
	{
		name: "nobody looks at the waiters when a link is ready", file: "fsm/node.go",
		old: "	l.state = LinkReady\n	for _, p := range n.providers {\n",
		new: "	l.state = LinkReady\n	for _, p := range n.providers[:0] {\n",
	},
	{
		name: "a restored request forgets who refused it", file: "fsm/restore.go",
		old: ", excluded: slices.Clone(row.Excluded),",
		new: ", excluded: row.Excluded[:0],",
	},
	{
		name: "the log forgets the reason of a release", file: "storage/command.go",
		old: "				b = appendUint(b, 2, uint64(c.Reason))\n",
		new: "",
	},
	{
		name: "a grant that comes after the client left is kept", file: "edged/admission/ticket.go",
		old: "		t.release(fsm.ReasonNeverSent, false)\n",
		new: "",
	},
	{
		name: "held leases are not told to be counted", file: "fsm/node.go", always: true,
		old: "r.link.node == n && !slices.Contains",
		new: "r.link.node == n && r.state == StateFencing && !slices.Contains",
	},
	{
		name: "a session whose edge may live returns its leases at once", file: "fsm/link.go",
		old: "if n.linked() || alive {",
		new: "if n.linked() {",
	},
	{
		name: "the level can fall", file: "fsm/level.go",
		old: "if c.Level <= m.Level() {",
		new: "if c.Level == m.Level() {",
	},
	{
		name: "a digest check is not handed on", file: "fsm/level.go",
		old: "	m.checks = append(m.checks, *c)\n",
		new: "",
	},
	{
		name: "the digest that a check says gets into the state", file: "fsm/level.go",
		old: "	m.checked = c.Index\n",
		new: "	if m.checked = c.Index; c.Digest[0] < 128 {\n\t\tm.nextEnqueue++\n\t}\n",
	},
	{
		name: "a restored state forgets where the edges are", file: "fsm/restore.go",
		old: "		m.addresses[row.Edge] = row.Address\n",
		new: "		_ = row\n",
	},
	{
		name: "a node names only what runs over lost links", file: "e2e/sim/node_test.go",
		old: "		running = append(running, r.lease)\n	}\n	c.named",
		new: "		if _, gone := n.gone[r.generation]; gone {\n\t\t\trunning = append(running, r.lease)\n\t\t}\n	}\n	c.named",
	},
	{
		name: "a node does not end what is not counted", file: "e2e/sim/node_test.go",
		old: "				waits = true\n",
		new: "				if _, gone := n.gone[r.generation]; !gone {\n\t\t\t\t\tcontinue\n\t\t\t\t}\n				waits = true\n",
	},
	{
		name: "a node takes dispatches over a link that has ended", file: "e2e/sim/node_test.go",
		old: "	if n.ended[c.generation] {\n		n.refuse",
		new: "	if n.ended[c.generation] && g.Lease == 0 {\n		n.refuse",
	},
	{
		name: "a node does not report what runs over a link that ended elsewhere", file: "e2e/sim/node_test.go", always: true,
		old: "			if r.generation != g {\n",
		new: "			if r.generation != g || n.ended[g] {\n",
	},
	{
		name: "an edge lets a transport go with its session", file: "e2e/sim/link_test.go",
		old: "	for _, x := range c.edge.runs {\n		if x.conn == c {",
		new: "	for _, x := range c.edge.runs {\n		if x.conn == c && c.generation == 0 {",
	},
	{
		name: "a place that the log has lost is not given again", file: "fsm/admit.go", always: true,
		old: "c.Place > 0 && m.vacant(c.Place) {",
		new: "c.Place > 0 && m.vacant(c.Place) && c.Model == \"\" {",
	},
	{
		name: "an edge forgets the places of its waiters", file: "edged/admission/attach.go",
		old: "		t.admit.Place = t.enqueue\n",
		new: "",
	},
	{
		name: "a place is given twice", file: "fsm/place.go",
		old: "	if place >= m.nextEnqueue {\n",
		new: "	if place < m.nextEnqueue {\n		return true\n	}\n	if place >= m.nextEnqueue {\n",
	},
	{
		name: "leases of an edge that may live go with their node's last link", file: "fsm/link.go",
		old: "if !fenced.apart {",
		new: "if fenced != nil {",
	},
	{
		name: "a restored link forgets that its edge may live", file: "fsm/restore.go",
		old: ", apart: lr.Apart,",
		new: ",",
	},
	{
		name: "a principal's limit is off by one", file: "fsm/principal.go",
		old: "w.inFlight >= w.limit.MaxInFlight\n}",
		new: "w.inFlight > w.limit.MaxInFlight\n}",
	},
	{
		name: "as many of a principal wait as may, and one more", file: "fsm/principal.go",
		old: "w.queued >= w.limit.MaxQueued",
		new: "w.queued > w.limit.MaxQueued",
	},
	{
		name: "nobody looks at the waiters of a principal that is below its limit again", file: "fsm/principal.go",
		old: "	if !held || w.full() {",
		new: "	if held || w.full() {",
	},
	{
		name: "the order of the queue goes before the turn", file: "fsm/principal.go", always: true,
		old: "	if a.turn != b.turn {",
		new: "	if a.enqueue != b.enqueue {\n\t\treturn a.enqueue < b.enqueue\n\t}\n\tif a.turn != b.turn {",
	},
	{
		name: "a restored round begins anew", file: "fsm/principal.go",
		old: "			w.turn = row.Turn\n",
		new: "			w.turn += 0 * row.Turn\n",
	},
	{
		name: "a run that goes back to its place is counted", file: "fsm/lease.go",
		old: "	if !requeue || r.response != nil {",
		new: "	if m.account(r, id, c.Reason, c.Usage); !requeue || r.response != nil {",
	},
	{
		name: "a run that is lost with its session is not counted", file: "fsm/ledger.go",
		old: "why == ReasonNeverSent {",
		new: "why == ReasonNeverSent || why == ReasonSessionEnded {",
	},
	{
		name: "the log forgets what a run used", file: "storage/command.go",
		old: "appendUsage(appendBool(b, 3, c.Requeue), &c.Usage)",
		new: "appendBool(b, 3, c.Requeue)",
	},
}
