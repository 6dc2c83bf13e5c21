package e2e

import (
	"encoding/json"
	"testing"

	"iop/e2e/backend"
	"iop/edged/adminapi"
)

// TestRevokedNodeIsCutOff: a refresh that replaces a node's token ends the link that was made with the old one, while noded
// runs on; it is not let in again until the old token is good again. Another node is not disturbed.
func TestRevokedNodeIsCutOff(t *testing.T) {
	t.Parallel()
	b1, b2 := newBackend(t, backend.Options{}), newBackend(t, backend.Options{})
	w := newWorld(t, pair(b1, b2, 1))
	connected := func(id string) bool {
		var list adminapi.NodeList
		if err := json.Unmarshal([]byte(w.iopctl(0, "nodes", "list", "-o", "json")), &list); err != nil {
			t.Fatal(err)
		}
		for _, n := range list.Nodes {
			if n.ID == id {
				return n.Connected
			}
		}
		return false
	}
	await(t, "the nodes are there", func() bool { return connected("n1") && connected("n2") })
	good := w.layout
	w.apply(func(l *layout) { l.edits["nodes[0].token_hash_sha256"] = sha("another token") })
	await(t, "the revoked node is cut off", func() bool { return !connected("n1") })
	if !connected("n2") {
		t.Error("the other node lost its link, too")
	}
	a := w.start(ask{tag: "refused", model: "only1"}).wait(t)
	a.want(t, 503)
	w.apply(func(l *layout) { *l = good })
	await(t, "the node is back with the token that is good again", func() bool { return connected("n1") })
}
