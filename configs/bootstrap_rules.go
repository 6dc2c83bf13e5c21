package configs

import "net/url"

func (b *Bootstrap) check(r *report) {
	path := "edge.bootstrap.public_url"
	if b.PublicURL != "" && !r.failed(path) {
		u, err := url.Parse(b.PublicURL)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
			r.problem(path, "is not an http or https URL", "write http://host:port, without a path")
		case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/":
			r.problem(path, "has more than a host and a port", "write http://host:port, without a path")
		}
	}
	if b.Plaintext {
		r.warn("edge.bootstrap.plaintext", "machines may join over plain HTTP: who listens in can use a join token first; better put a proxy that speaks TLS in front")
	}
}
