package edged

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"iop/configs"
)

// listeners are the open ports of an edge.
type listeners struct {
	openai, node, admin net.Listener
	cluster             net.Listener // nil: for nobody
}

// listen opens the ports, all or none.
func listen(s *configs.Self) (*listeners, error) {
	c, l := &s.Listen, &listeners{}
	for _, port := range []struct {
		key, address string
		into         *net.Listener
	}{
		{"openai", c.OpenAI, &l.openai}, {"node", c.Node, &l.node}, {"admin", c.Admin, &l.admin}, {"cluster", clusterAddress(s), &l.cluster},
	} {
		if port.address == "" {
			continue
		}
		opened, err := net.Listen("tcp", port.address)
		if err != nil {
			l.close()
			return nil, fmt.Errorf("edge.listen.%s: listen on %s: %w; %s", port.key, port.address, err, listenCure(err))
		}
		*port.into = opened
	}
	return l, nil
}

func listenCure(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "another program has the port: stop it or choose another port"
	case errors.Is(err, os.ErrPermission):
		return "ports below 1024 need a privilege: choose a higher port"
	}
	return "use host:port with an address of this machine"
}

func (l *listeners) close() {
	for _, x := range []net.Listener{l.openai, l.node, l.admin, l.cluster} {
		if x != nil {
			_ = x.Close() // nothing was accepted that could be lost
		}
	}
}

// loopback tells whether a listener can only be reached from this machine.
func loopback(l net.Listener) bool {
	a, ok := l.Addr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}
