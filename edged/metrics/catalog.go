package metrics

import "strings"

// Described is what there is to say of an exported metric.
type Described struct {
	Room   string // heading under which the documentation has it
	Name   string
	Type   string // counter, gauge or histogram
	Labels []string
	Help   string
	Odd    string // what to look at if it is odd; Markdown, "" = nothing is to be said
}

// entry is a row of the catalog; the labels are in one text.
type entry struct{ name, kind, labels, help, odd string }

const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// room is a heading and what is below it.
type room struct {
	title   string
	entries []entry
}

// Catalog returns all metrics of ours that an edge exports, in the order of the documentation.
func Catalog() []Described {
	var out []Described
	for _, r := range rooms {
		for _, e := range r.entries {
			out = append(out, e.described(r.title))
		}
	}
	return out
}

func (e *entry) described(room string) Described {
	return Described{Room: room, Name: e.name, Type: e.kind, Labels: strings.Fields(e.labels), Help: e.help, Odd: e.odd}
}

// described finds a metric; all that is exported is in the catalog, which a test holds.
func described(name string) Described {
	for _, r := range rooms {
		for _, e := range r.entries {
			if e.name == name {
				return e.described(r.title)
			}
		}
	}
	panic("metrics: " + name + " is not in the catalog")
}

// rooms is the table; nothing changes it.
var rooms = [...]room{
	{"Requests of clients", []entry{
		{nameRequests, counter, "model provider outcome", "Requests by model, provider and how they ended.", "Which `outcome` grows? `backend_error`: the provider's own log, `iopctl providers show ID`. `queue_full`, `queue_timeout`, `principal_limit`: too little capacity for what is asked. `unavailable`: `iopctl providers list`. `no_leader`: `iopctl cluster members`. `internal`: the edge's log."},
		{nameOpenRequests, gauge, "", "Requests of clients that have not ended.", "It grows and nothing ends: `iopctl leases list` shows what runs, `iopctl queue list` what waits."},
		{nameRequestDuration, histogram, "model", "Time from a request's arrival to its end.", "Long answers take long; compare it with `iop_first_byte_seconds` and `iop_queue_wait_seconds` to see which part grew."},
		{nameFirstByte, histogram, "model", "Time from a request's arrival to the backend's first byte.", "Less the wait, it is what the backend took: a model that was swapped out, a prompt that grew, a machine that is busy with something else."},
		{nameQueueWait, histogram, "model", "Time from admission to the grant of a slot.", "`iopctl queue list` and `iopctl requests explain ID` say why."},
		{nameRequeues, counter, "", "Requests that a backend did not run and that went back to their place.", "A backend refuses connections while its node calls it healthy: `iopctl providers list`."},
	}},
	{"Usage", []entry{
		{nameTokensIn, counter, "principal_ref token_ref model provider", "Prompt tokens that backends reported.", ""},
		{nameTokensOut, counter, "principal_ref token_ref model provider", "Completion tokens that backends reported.", ""},
		{nameUntold, counter, "principal_ref token_ref model provider", "Requests that were answered and whose backend told no usage.", "These are missing in the sums of tokens. Some APIs tell none (speech, images); a chat backend should: upgrade it."},
	}},
	{"The queue", []entry{
		{nameQueuePending, gauge, "", "Waiters of the whole cluster.", ""},
		{nameQueueMax, gauge, "", "Bound of the queue.", "At `iop_queue_pending` = this, clients get 429."},
		{nameQueueLong, gauge, "", "Waiters of class long.", "They wait for long slots: `long_capacity` of the providers."},
		{nameQueueDetached, gauge, "", "Waiters whose session has ended.", "They keep their places until their clients come again, at most `reattach_window_ms`."},
		{nameQueueOldest, gauge, "", "Age of the waiter that has waited longest; 0 = nobody waits.", "`iopctl queue list`: what is it waiting for?"},
		{nameModelAvailable, gauge, "model", "1 if a provider of the model is enabled, healthy, not draining and connected.", "0: requests for it get 503. `iopctl models show ID`."},
		{nameModelQueued, gauge, "model", "Waiters for the model.", ""},
	}},
	{"Providers and leases", []entry{
		{nameProviderUp, gauge, "provider node", "1 if the provider's node has a ready link.", "0: is noded running there, and can it reach an edge?"},
		{nameProviderHealthy, gauge, "provider node", "1 if its node reports it healthy.", "0 though it is connected: the backend does not answer its node. `iopctl providers show ID` has the cause."},
		{nameProviderEnabled, gauge, "provider node", "1 if the configuration has it enabled.", ""},
		{nameProviderDraining, gauge, "provider node", "1 if it takes no new lease.", "Somebody drained it: `iopctl debug log` has when; `iopctl providers undrain ID`."},
		{nameProviderCapacity, gauge, "provider node", "Slots; 0 = offline or unlimited.", ""},
		{nameProviderInFlight, gauge, "provider node", "Leases held.", ""},
		{nameProviderLongCap, gauge, "provider node", "Long slots; absent if they are not counted.", ""},
		{nameProviderLong, gauge, "provider node", "Long leases held; absent if they are not counted.", ""},
		{nameProviderFencing, gauge, "provider node", "Leases held by fenced links.", "They count until the node reports, or the fence times out."},
		{nameProviderQueued, gauge, "provider node", "Waiters that have it as a candidate; they do not add up to the queue.", ""},
		{nameProviderLongQ, gauge, "provider node", "Long waiters that have it as a candidate.", ""},
		{nameLeases, gauge, "", "Leases of the whole cluster.", ""},
		{nameLeasesOver, gauge, "", "Leases above the capacity of their providers, summed up over all providers.", "Above 0 only while a lowered capacity is still used. If not: `iopctl leases list`, and keep the log."},
		{nameFencing, gauge, "", "Leases of fenced links, also of nodes that are offline.", "Slots that nobody can use until the node reports or `fence_timeout_ms` is over. `iopctl nodes list`."},
		{nameGranted, counter, "class", "Leases granted to this edge's requests.", ""},
		{nameReturned, counter, "reason", "Leases of this edge's requests that were returned, by reason.", "`done` is the rule. `link_lost`, `fence_timeout`: nodes vanish. `superseded`: a node registers again and again."},
		{nameReleaseRetries, counter, "", "Releases that had to be proposed again.", "The log is slow or has no leader: see `iop_commit_seconds`, `iop_has_leader`."},
		{nameGateRefusals, counter, "", "Dispatches that a node's gate refused; should stay 0.", "The node counts its backend's slots otherwise than the log does: something else uses the backend through that node, or leases and runs differ. Keep the log of both."},
		{nameUnknownRuns, counter, "", "Frames about runs that this edge does not know; dropped.", "A few come with a link that breaks. If it keeps growing, a node and an edge differ: versions? `iopctl nodes list -o wide`."},
	}},
	{"Stored responses", []entry{
		{nameResponses, gauge, "", "Responses that are stored for clients.", ""},
		{nameResponsesBytes, gauge, "", "Bytes that stored responses count for.", ""},
		{nameResponsesMax, gauge, "", "Bytes that stored responses may count for.", "When it is reached the oldest go."},
		{nameBackground, gauge, "", "Stored responses that have not ended: they run, or wait, in the background.", ""},
	}},
	{"Nodes", []entry{
		{nameNodeUp, gauge, "node", "1 if the node has a ready link.", "`iopctl nodes show ID`; then the node's log."},
		{nameNodeGeneration, gauge, "node", "The node's newest generation.", "Each registration is one more. If it keeps growing the link does not hold: the log of both ends has why."},
		{nameNodeLinks, gauge, "node edge state", "Links of the node by edge and state.", ""},
		{nameLinkEvents, counter, "event", "Registrations, refusals and ends of links to nodes.", "`refused_…`: a node is turned away, its log and the edge's have a cure."},
	}},
	{"The log", []entry{
		{nameCommit, histogram, "", "Time from proposing an entry to having it applied, of entries that this replica proposed.", "Slow: the disk (`iop_log_sync_seconds`), or the way to the other replicas (`iop_peer_round_trip_seconds`)."},
		{nameCommitWait, histogram, "", "Time that the oldest command of an entry waited to be proposed.", "The log is asked for more than it can take."},
		{nameSync, histogram, "", "Time to write entries to this replica's log, with fsync.", "It is the disk. Something else writes to it, or it is failing."},
		{nameBatch, histogram, "", "Commands per committed entry.", ""},
		{nameApply, histogram, "", "Time the machine took to apply an entry.", ""},
		{nameSnapshot, histogram, "", "Time to write a snapshot.", ""},
		{nameSnapshotTime, gauge, "", "When the newest snapshot was written, in seconds since 1970; absent if there is none.", "One is written at least every 15 minutes if anything happens. If not, the log has `snapshot failed`."},
		{nameSnapshotIndex, gauge, "", "Index of the newest snapshot; 0 = none.", ""},
		{nameSnapshotBytes, gauge, "", "Size of the newest snapshot; 0 = none.", ""},
		{nameLogBytes, gauge, "", "Size of the log on disk.", "It keeps its size when entries are dropped. It grows with `edge.history`, and if no snapshots are written."},
		{nameLogFirst, gauge, "", "Index of the first entry that is kept; 0 = none.", ""},
		{nameLogLast, gauge, "", "Index of the last entry of this replica's log.", ""},
		{nameAppliedIndex, gauge, "", "Index of the last applied entry.", "Between replicas it differs by little. If one stands still, that one is stuck."},
		{nameTerm, gauge, "", "Term of the last applied entry.", ""},
		{nameLogEntries, counter, "", "Entries that this replica has proposed and that were committed.", ""},
		{nameLogWritten, counter, "", "Bytes in them.", ""},
		{nameQueuedBytes, gauge, "", "Bytes of commands whose outcome is not known yet.", ""},
		{nameOverloaded, counter, "", "Commands refused because too much waited for the log.", "Clients got 503 `overloaded`. See `iop_commit_seconds`."},
		{nameWatchMissed, counter, "", "Effects that observers (iopctl leases watch, the live feed) missed because they read too slowly.", "Nothing is lost but their view; they read the state anew."},
		{nameStorageFailed, gauge, "", "1 if the log of this replica failed: it admits nothing and is about to end.", "The edge's log has the cause and a cure."},
		{nameDiskFree, gauge, "", "Bytes that are free for the edge on the disk of edge.data_dir; absent if the system does not tell.", "Make room before it is 0: a replica that can't write ends."},
		{nameDiskSize, gauge, "", "Size of the disk of edge.data_dir; absent if the system does not tell.", ""},
	}},
	{"The cluster", []entry{
		{nameReady, gauge, "", "1 if this edge takes requests: what /readyz says.", "`curl …/readyz` says why not."},
		{nameHasLeader, gauge, "", "1 if this replica knows a leader.", "0 for longer than an election: `iopctl cluster members`."},
		{nameLeaderless, counter, "", "Time for which this replica knew no leader.", ""},
		{nameLeader, gauge, "", "1 if this replica leads.", "The sum over the cluster is 1, but for moments."},
		{nameLeaderChanges, counter, "", "Changes of the leader as this replica saw them.", "Often: the network between the replicas, a disk that stalls, a machine that freezes."},
		{nameMembers, gauge, "", "Members of the cluster, as this replica knows them.", ""},
		{nameVoters, gauge, "", "Members that vote.", "With two, none may be lost."},
		{nameLag, gauge, "", "Entries of its log that this replica has not applied yet.", ""},
		{namePeerUp, gauge, "peer", "1 if the replica answers this one.", ""},
		{namePeerRoundTrip, histogram, "peer", "Time of a ping to the replica.", ""},
		{namePeerForwarded, counter, "peer verdict", "Batches of commands sent to the replica as the leader, by what it said.", ""},
		{nameSessions, gauge, "state", "Sessions of edges by state: open, or in the grace after their start.", "One per edge that runs."},
		{nameReopenings, counter, "", "Sessions that this edge opened because the one before was ended while it lived.", "The cluster had not heard of it for `session_ttl_ms`: the network, or the machine froze."},
		{nameMismatch, gauge, "", "Replicas whose state differed from the leader's when they were compared last; only the leader that compared shows it, and a replica that found its own state to differ.", "Anything but 0: `iopctl cluster verify`, then the page."},
		{nameDigestChecks, counter, "verdict", "Comparisons of all replicas' states that this replica made as the leader.", "`unknown`: somebody did not answer."},
		{nameDigestTime, gauge, "", "When this replica last compared the states as the leader, in seconds since 1970; absent if it never did.", ""},
	}},
	{"The edge", []entry{
		{nameRevision, gauge, "", "Revision of the configuration.", "Differs between edges for moments only."},
		{nameConfigTime, gauge, "", "When the configuration in use came into effect, in seconds since 1970.", "`iopctl config history` says what changed."},
		{nameRefreshes, counter, "result", "Attempts to change the configuration that this edge was asked for, by result.", "`invalid`: the file has problems, `iopctl config validate`."},
		{nameAdminChanges, counter, "change result", "Changes that operators made, or were refused, by way of this edge's admin listener.", "The edge's log has a line for each, with who and from where."},
		{nameBuild, gauge, "version goversion", "1; the program's version and the Go release it was built with.", "Versions differ for longer than an upgrade takes?"},
		{nameWall, gauge, "", "Wall clock of this edge's machine, in seconds since 1970.", "Compare it with `timestamp()` of the scrape. No decision reads the wall clock; certificates, join tokens and the times in usage and history do."},
		{nameClockJumps, counter, "", "Times at which the wall clock moved by a second or more against the monotonic one.", "Somebody or something sets the clock: NTP steps, a machine that was suspended."},
		{nameCertificate, gauge, "certificate", "Time until a certificate file of edge.tls or edge.cluster ends, the earliest one in the file; negative = it has ended.", "`iopctl certs show`, `iopctl certs edge ID --renew`."},
		{nameSpansExported, counter, "", "Spans of traces that the collector of edge.traces has taken.", ""},
		{nameSpansLost, counter, "", "Spans of traces that were lost: the collector of edge.traces did not take them, or was too slow. Requests are not affected.", "The edge's log has the collector's error, once a minute at most."},
	}},
}
