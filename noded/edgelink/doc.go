// Package edgelink is the node's end of the wire to the edges.
//
// A Link keeps one edge dialled: it registers, hands the configuration to Hands, reports ready, beats, serves runs over
// data connections that it dials, and comes back with backoff when the link is lost. Runs is what all links of one node
// share: what still runs of generations that are gone, so that any link can report it. noded builds both and joins them
// with gate and adapters (Hands). It knows nothing of backends.
//
// Where next: link.go (Link, the entry), life.go (life of one link), serve.go (one data connection), answer.go, runs.go; the
// other end is edged/nodelink, the frames are proto/nodepb.
package edgelink
