package peerlink

import (
	"crypto/x509"
	"fmt"
	"strings"

	"iop/proto/peerpb"
)

// hello is what this replica says first, to another.
func (n *Network) hello(to string) *peerpb.Hello {
	return &peerpb.Hello{
		Cluster: n.cluster(), From: n.o.ID, To: to, Version: n.o.Version,
		ProtocolMajor: peerpb.ProtocolMajor, ProtocolMinor: peerpb.ProtocolMinor,
	}
}

// welcome tells whether another replica may speak with this one: nil, or the cause with a cure. cert is its certificate,
// nil in plain text.
func (n *Network) welcome(h *peerpb.Hello, cert *x509.Certificate) error {
	switch {
	case h.From == "":
		return refused("the other side does not say which replica it is; is it another program?")
	case h.ProtocolMajor != peerpb.ProtocolMajor:
		return refused("replica %s (version %s) speaks protocol %d, replica %s protocol %d; install versions that have one in common",
			h.From, h.Version, h.ProtocolMajor, n.o.ID, peerpb.ProtocolMajor)
	case h.From == n.o.ID && h.To == n.o.ID:
		return refused("replica %s dialled itself; correct its peers' addresses (edge.cluster.peers, edge.advertise.cluster)", n.o.ID)
	case h.To != n.o.ID:
		return refused("replica %s meant %s, but this is %s; correct the address of %s in edge.cluster.peers", h.From, h.To, n.o.ID, h.To)
	case h.From == n.o.ID:
		return refused("another replica calls itself %s too; give each its own edge.id", n.o.ID)
	case cert != nil && !Names(cert, h.From):
		return refused("the certificate is for %s, not for replica %s; issue one that names it: iopctl certs edge %s",
			strings.Join(cert.DNSNames, ", "), h.From, h.From)
	}
	return n.sameCluster(h)
}

// agrees is welcome for the side that dialled: the answer must come from the replica that was meant. Its certificate
// was checked in the handshake.
func (n *Network) agrees(h *peerpb.Hello, meant string) error {
	switch {
	case h.ProtocolMajor != peerpb.ProtocolMajor:
		return refused("replica %s (version %s) speaks protocol %d, replica %s protocol %d; install versions that have one in common",
			h.From, h.Version, h.ProtocolMajor, n.o.ID, peerpb.ProtocolMajor)
	case h.From != meant:
		return refused("replica %s answers at the address of %s; correct it in edge.cluster.peers", h.From, meant)
	}
	return n.sameCluster(h)
}

// sameCluster lets a replica without a cluster speak with all: it is about to form or to join one.
func (n *Network) sameCluster(h *peerpb.Hello) error {
	own := n.cluster()
	if own == "" || h.Cluster == "" || own == h.Cluster {
		return nil
	}
	return refused("replica %s is of cluster %s, replica %s of cluster %s; does edge.cluster.peers name a replica of another cluster, has one an old data directory, or did one start with an empty one and no edge.cluster.peers, and so made a cluster of its own?",
		h.From, h.Cluster, n.o.ID, own)
}

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

// Names tells whether a certificate is that of a replica: a DNS name is its id, or begins with its id and a dot.
func Names(cert *x509.Certificate, id string) bool {
	for _, name := range cert.DNSNames {
		if name == id || strings.HasPrefix(name, id+".") {
			return true
		}
	}
	return false
}
