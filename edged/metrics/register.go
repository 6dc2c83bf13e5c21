package metrics

import "github.com/prometheus/client_golang/prometheus"

func fineBuckets() []float64 { return prometheus.ExponentialBuckets(100e-6, 2.5, 13) }

// waitBuckets span a millisecond to ten minutes.
func waitBuckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
}

// What is registered has its help, and its labels, from the catalog.

func newDesc(d Described) *prometheus.Desc { return prometheus.NewDesc(d.Name, d.Help, d.Labels, nil) }

func (m *Metrics) counter(name string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: described(name).Help})
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) gauge(name string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: described(name).Help})
	m.registry.MustRegister(g)
	return g
}

func (m *Metrics) histogram(name string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: described(name).Help, Buckets: buckets})
	m.registry.MustRegister(h)
	return h
}

func (m *Metrics) counterVec(name string) *prometheus.CounterVec {
	d := described(name)
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: d.Help}, d.Labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) gaugeVec(name string) *prometheus.GaugeVec {
	d := described(name)
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: d.Help}, d.Labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) histogramVec(name string, buckets []float64) *prometheus.HistogramVec {
	d := described(name)
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: d.Help, Buckets: buckets}, d.Labels)
	m.registry.MustRegister(v)
	return v
}

// counters is a vector with one label whose values are few and ours.
func (m *Metrics) counters(name string) *table[string, prometheus.Counter] {
	v := m.counterVec(name)
	return newTable(func(value string) *prometheus.Counter {
		c := v.WithLabelValues(value)
		return &c
	})
}
