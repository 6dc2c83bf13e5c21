package edged

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"iop/configs"
)

// listeners are the open ports of an edge.
type listeners struct{ openai, node, admin net.Listener }

// listen opens the ports, all or none.
func listen(c *configs.Listen) (*listeners, error) {
	l := &listeners{}
	for _, port := range []struct {
		key, address string
		into         *net.Listener
	}{
		{"openai", c.OpenAI, &l.openai}, {"node", c.Node, &l.node}, {"admin", c.Admin, &l.admin},
	} {
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
	for _, x := range []net.Listener{l.openai, l.node, l.admin} {
		if x != nil {
			_ = x.Close() // nothing was accepted that could be lost
		}
	}
}

// serverTLS reads the certificate anew at each handshake, so that a renewed one needs no restart. nil = no TLS.
func serverTLS(c *configs.TLS) (*tls.Config, error) {
	if c.Cert == "" && c.Key == "" {
		return nil, nil
	}
	read := func() (*tls.Config, error) {
		cert, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("edge.tls: read %s and %s: %w", c.Cert, c.Key, err)
		}
		t := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}}
		if c.ClientCA == "" {
			return t, nil
		}
		pem, err := os.ReadFile(c.ClientCA)
		if err != nil {
			return nil, fmt.Errorf("edge.tls.client_ca: %w", err)
		}
		t.ClientCAs = x509.NewCertPool()
		if !t.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("edge.tls.client_ca: %s holds no certificate in PEM form", c.ClientCA)
		}
		t.ClientAuth = tls.RequireAndVerifyClientCert
		return t, nil
	}
	t, err := read()
	if err != nil {
		return nil, err
	}
	t.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return read() }
	return t, nil
}

// loopback tells whether a listener can only be reached from this machine.
func loopback(l net.Listener) bool {
	a, ok := l.Addr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}
