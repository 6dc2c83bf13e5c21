package configs

import (
	"fmt"
	"strings"
)

func (s *Self) check(r *report) {
	checkName(r, "edge.id", s.ID)
	s.Listen.check(r)
	checkDial(r, "edge.advertise.node", s.Advertise.Node)
	checkDial(r, "edge.advertise.cluster", s.Advertise.Cluster)
	s.TLS.check(r)
	s.CORS.check(r)
	s.checkAdmin(r)
	s.checkPeers(r)
	s.Bootstrap.check(r)
	s.Traces.check(r, "edge.traces")
	checkDial(r, "edge.control_plane.address", s.ControlPlane.Address)
	if s.TLS.Cert == "" && !s.Link.Plaintext && s.Listen.Node != "" && !onLoopback(s.Listen.Node) && !r.failed("edge.listen.node") && !r.failed("edge.tls") {
		r.problem("edge.tls.cert", "is missing, while nodes reach "+s.Listen.Node+" from other machines: their tokens and prompts would travel unencrypted",
			"give edge.tls.cert and edge.tls.key (iopctl certs makes them), listen on 127.0.0.1, or accept plain text with edge.link.plaintext: true")
	}
	if s.Listen.A2A != "" {
		r.warn("edge.listen.a2a", "this version does not serve A2A yet; nothing listens there")
	}
	if s.ControlPlane.Address != "" {
		r.warn("edge.control_plane.address", "this version does not dial a control plane yet")
	}
}

func (l *Listen) check(r *report) {
	listeners := []struct{ name, address string }{
		{"openai", l.OpenAI}, {"node", l.Node}, {"admin", l.Admin}, {"cluster", l.Cluster}, {"a2a", l.A2A},
	}
	for i, x := range listeners {
		path := "edge.listen." + x.name
		checkListen(r, path, x.address)
		for _, y := range listeners[:i] {
			if x.address != "" && y.address != "" && sameListener(x.address, y.address) {
				r.problem(path, fmt.Sprintf("%s collides with edge.listen.%s (%s)", x.address, y.name, y.address), "give each listener a port of its own")
			}
		}
	}
}

func (t *TLS) check(r *report) {
	switch {
	case t.Cert != "" && t.Key == "":
		r.problem("edge.tls.key", "is missing, while edge.tls.cert is given", "give the private key's file, or neither")
	case t.Cert == "" && t.Key != "":
		r.problem("edge.tls.cert", "is missing, while edge.tls.key is given", "give the certificate's file, or neither")
	case t.OpenAI && t.Cert == "":
		r.problem("edge.tls.openai", "asks for TLS without edge.tls.cert", "give edge.tls.cert and edge.tls.key too")
	case t.ClientCA != "" && t.Cert == "":
		r.problem("edge.tls.client_ca", "asks for client certificates without edge.tls.cert", "give edge.tls.cert and edge.tls.key too")
	}
}

// adminTokenMin is how long an admin token should be, in bytes: one of 'iopctl tokens new' is longer.
const adminTokenMin = 16

func (a *Admin) check(r *report) {
	for _, x := range []struct {
		path  string
		token Secret
	}{{"edge.admin.token", a.Token}, {"edge.admin.view_token", a.ViewToken}} {
		if n := len(x.token.Reveal()); n > 0 && n < adminTokenMin {
			r.warn(x.path, fmt.Sprintf("it has less than %d characters, so it could be guessed: 'iopctl tokens new' makes one that can't", adminTokenMin))
		}
	}
	switch {
	case a.ViewToken == "" || r.failed("edge.admin.token") || r.failed("edge.admin.view_token"):
	case a.Token == "":
		r.problem("edge.admin.view_token", "is given without edge.admin.token: everyone could do more without it than with it",
			"set edge.admin.token: ${IOP_ADMIN_TOKEN} too")
	case a.Token == a.ViewToken:
		r.problem("edge.admin.view_token", "is the same as edge.admin.token", "give two different tokens: 'iopctl tokens new' makes one")
	}
}

func (s *Self) checkAdmin(r *report) {
	s.Admin.check(r)
	if s.Listen.Admin == "" || r.failed("edge.listen.admin") || onLoopback(s.Listen.Admin) {
		return
	}
	if s.Admin.Token == "" && !r.failed("edge.admin.token") {
		r.problem("edge.admin.token", "is missing, while the admin listener "+s.Listen.Admin+" is not on loopback",
			"listen on 127.0.0.1:9080, or set edge.admin.token: ${IOP_ADMIN_TOKEN}")
	}
	if s.TLS.Cert == "" && !r.failed("edge.tls") {
		r.problem("edge.tls.cert", "is missing, while the admin listener "+s.Listen.Admin+" is not on loopback",
			"listen on 127.0.0.1:9080, or give edge.tls.cert and edge.tls.key")
	}
}

func (s *Self) checkPeers(r *report) {
	peers := s.Cluster.Peers
	if len(peers) == 0 {
		return
	}
	ids, addresses, own := newUniques(r), newUniques(r), false
	for i, p := range peers {
		at := indexPath("edge.cluster.peers", i)
		checkName(r, at+".id", p.ID)
		checkDial(r, at+".address", p.Address)
		ids.add(at+".id", p.ID, "the replica "+shorten(p.ID), "name each replica once")
		addresses.add(at+".address", p.Address, "this address", "give each replica its own")
		own = own || p.ID == s.ID
	}
	if s.ID != "" && !own && !r.failed("edge.cluster.peers") {
		r.problem("edge.cluster.peers", "this replica ("+s.ID+") is not among them", "list every replica, this one included, or correct edge.id")
	}
	switch {
	case s.Listen.Cluster == "":
		r.problem("edge.listen.cluster", "is empty, while edge.cluster.peers names replicas", `give an address, for example ":7400"`)
	case s.TLS.Cert == "" && !s.Cluster.Plaintext && !onLoopback(s.Listen.Cluster) && !r.failed("edge.listen.cluster") && !r.failed("edge.tls"):
		r.problem("edge.tls.cert", "is missing, while replicas speak over "+s.Listen.Cluster,
			"give edge.tls.cert and edge.tls.key, or accept plain text with edge.cluster.plaintext: true")
	case s.TLS.Cert != "" && s.TLS.ClientCA == "" && s.Cluster.CA == "" && !r.failed("edge.cluster.ca") && !r.failed("edge.tls"):
		r.problem("edge.cluster.ca", "is missing, as is edge.tls.client_ca: nobody could tell a replica from a stranger",
			"give the PEM file of the authority of the replicas' certificates")
	}
	checkPeerNames(r, peers)
	if len(peers)%2 == 0 {
		r.warn("edge.cluster.peers", fmt.Sprintf("%d replicas survive no more losses than %d would", len(peers), len(peers)-1))
	}
}

// checkPeerNames refuses ids that one certificate would be good for: it names a replica by its id, or by its id, a dot
// and anything.
func checkPeerNames(r *report, peers []Peer) {
	for i, p := range peers {
		for _, q := range peers {
			if p.ID != "" && q.ID != "" && strings.HasPrefix(p.ID, q.ID+".") {
				r.problem(indexPath("edge.cluster.peers", i)+".id", shorten(p.ID)+" is "+shorten(q.ID)+" with an ending: a certificate for the one would pass for the other",
					"choose ids of which none is another, a dot and more")
			}
		}
	}
}
