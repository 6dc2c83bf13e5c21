package configs

// Traces says where a daemon exports what it records of requests. An edge and a node each have their own: what both
// record of a request is one trace.
type Traces struct {
	Endpoint               string            `json:"endpoint" doc:"OTLP collector, as http(s)://host:port; https is with TLS. For protocol http a path may follow (else /v1/traces). Empty: nothing is recorded."`
	Protocol               string            `json:"protocol" enum:"grpc,http" doc:"OTLP over gRPC (usual port 4317) or over HTTP with protobuf (4318)."`
	Headers                map[string]Secret `json:"headers" doc:"Sent with each export, by name, for example authorization; write ${NAME} in the values and set the variables."`
	SampleRatio            float64           `json:"sample_ratio" min:"0" max:"1" doc:"Share of the requests to record, of those whose client does not decide it by a W3C traceparent."`
	ClientSampledPerSecond int               `json:"client_sampled_per_second" min:"0" max:"1000000" doc:"How many requests a second are recorded because their client asks for it (a traceparent that ends in -01), beside those of sample_ratio. 0: no client decides that. At a node: of those that come by an edge without traces; what an edge has decided is followed."`
	ServiceName            string            `json:"service_name" doc:"service.name of the spans. Empty: iop-edge, or iop-node."`
	CA                     string            `json:"ca" doc:"Authorities that may sign the collector's certificate, a PEM file. Empty: those of the system."`
}

// RevealHeaders gives the headers as they are sent, secrets and all.
func (t *Traces) RevealHeaders() map[string]string {
	out := make(map[string]string, len(t.Headers))
	for name, value := range t.Headers {
		out[name] = value.Reveal()
	}
	return out
}

// clientSampledPerSecond is enough for somebody who looks for something, and no load for a collector.
const clientSampledPerSecond = 10

// newTraces gives the defaults.
func newTraces() Traces {
	return Traces{Protocol: "grpc", Headers: map[string]Secret{}, SampleRatio: 1, ClientSampledPerSecond: clientSampledPerSecond}
}
