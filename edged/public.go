package edged

import (
	"crypto/tls"
	"net"
	"net/http"

	"iop/configs"
	"iop/edged/openai"
)

// servePublic serves the openai listener: HTTP/1.1 and HTTP/2 over TLS if edge.tls.openai asks for it, else plain text,
// on loopback also HTTP/2 by prior knowledge (h2c).
func (d *Daemon) servePublic(h *http.Server, port net.Listener) error {
	h.Protocols = new(http.Protocols)
	h.Protocols.SetHTTP1(true)
	if !d.self.TLS.OpenAI {
		h.Protocols.SetUnencryptedHTTP2(loopback(port))
		return h.Serve(port)
	}
	files := d.self.TLS
	files.ClientCA = "" // clients show a token
	security, err := serverTLS(&files)
	if err != nil {
		return err
	}
	h.Protocols.SetHTTP2(true)
	h.TLSConfig = forClients(security)
	return h.ServeTLS(port, "", "")
}

// forClients is a configuration for clients of all kinds.
func forClients(t *tls.Config) *tls.Config {
	perHandshake := t.GetConfigForClient
	suit := func(t *tls.Config) *tls.Config {
		t.MinVersion, t.NextProtos = tls.VersionTLS12, []string{"h2", "http/1.1"}
		return t
	}
	t = suit(t)
	t.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		c, err := perHandshake(h)
		if err != nil {
			return nil, err
		}
		return suit(c), nil
	}
	return t
}

func publicCORS(c *configs.CORS) openai.CORS {
	return openai.CORS{Origins: c.Origins, Headers: c.Headers, MaxAge: c.MaxAgeMS.Duration()}
}
