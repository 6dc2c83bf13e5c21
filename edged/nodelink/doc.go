// Package nodelink is the edge's end of the wire to the nodes.
//
// It accepts what nodes dial (one listener for control and data), registers links with the machine, watches their
// heartbeats, and carries runs: Exchange sends one request to a node over a pooled data connection and hands the answer
// on as it arrives. edged builds it and joins it with storage (Commands) and the configuration (Catalog); admission's
// dispatch ends in Exchange. It decides nothing about slots: it proposes commands and reports how runs ended.
//
// Where next: links.go (Links, the entry), door.go (what is dialled), control.go (life of one link), proposals.go (what it
// commands), exchange.go and run.go (one run), pool.go (data connections); the other end is noded/edgelink, the frames are
// proto/nodepb.
package nodelink
