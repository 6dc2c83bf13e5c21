package configs

import (
	"net/http"
	"net/url"
	"strings"
)

func (c *CORS) check(r *report) {
	for i, origin := range c.Origins {
		path := indexPath("edge.cors.origins", i)
		if u, err := url.Parse(origin); origin != "*" && (err != nil || u.Scheme == "" || u.Host == "" || origin != u.Scheme+"://"+u.Host) && !r.failed(path) {
			r.problem(path, shorten(origin)+" is no origin", "write scheme://host[:port] without a path, for example https://app.example.com, or *")
		}
	}
	for i, name := range c.Headers {
		path := indexPath("edge.cors.headers", i)
		if (name == "" || strings.ContainsAny(name, " ,:\t\r\n") || http.CanonicalHeaderKey(name) == "") && !r.failed(path) {
			r.problem(path, shorten(name)+" is no name of a header", "write one name, for example X-App-Version")
		}
	}
}
