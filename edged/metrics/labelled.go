package metrics

import "github.com/prometheus/client_golang/prometheus"

// labelled shows at a scrape what the tables of routes and usages count. The counts are plain numbers in the tables, so
// that Totals can sum them up every second.
type labelled struct {
	m                   *Metrics
	requests            *prometheus.Desc
	tokensIn, tokensOut *prometheus.Desc
	untold              *prometheus.Desc
}

func newLabelled(m *Metrics) *labelled {
	return &labelled{
		m: m, requests: newDesc(described(nameRequests)), tokensIn: newDesc(described(nameTokensIn)),
		tokensOut: newDesc(described(nameTokensOut)), untold: newDesc(described(nameUntold)),
	}
}

// Describe sends what Collect may send.
func (l *labelled) Describe(ch chan<- *prometheus.Desc) {
	ch <- l.requests
	ch <- l.tokensIn
	ch <- l.tokensOut
	ch <- l.untold
}

// Collect sends the counts. A route in use has all outcomes, since a rate needs the 0 before the first one.
func (l *labelled) Collect(ch chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	l.m.routes.each(func(k routeKey, r *Route) {
		for o := range outcomes {
			count(l.requests, r.ended[o].Load(), k.model, k.provider, o.String())
		}
	})
	l.m.usages.each(func(k UsageKey, u *Usage) {
		count(l.tokensIn, u.in.Load(), k.Principal, k.Token, k.Model, k.Provider)
		count(l.tokensOut, u.out.Load(), k.Principal, k.Token, k.Model, k.Provider)
		count(l.untold, u.untold.Load(), k.Principal, k.Token, k.Model, k.Provider)
	})
}
