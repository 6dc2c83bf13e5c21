package configs

// Traces says where a daemon exports what it records of requests. An edge and a node each have their own: what both
// record of a request is one trace.
type Traces struct {
	Endpoint    string            `json:"endpoint" doc:"OTLP collector, as http(s)://host:port; https is with TLS. For protocol http a path may follow (else /v1/traces). Empty: nothing is recorded."`
	Protocol    string            `json:"protocol" enum:"grpc,http" doc:"OTLP over gRPC (usual port 4317) or over HTTP with protobuf (4318)."`
	Headers     map[string]Secret `json:"headers" doc:"Sent with each export, by name, for example authorization; write ${NAME} in the values and set the variables."`
	SampleRatio float64           `json:"sample_ratio" min:"0" max:"1" doc:"Share of the requests to record, of those that bring no decision: a W3C traceparent decides for itself."`
	ServiceName string            `json:"service_name" doc:"service.name of the spans. Empty: iop-edge, or iop-node."`
	CA          string            `json:"ca" doc:"Authorities that may sign the collector's certificate, a PEM file. Empty: those of the system."`
}

// RevealHeaders gives the headers as they are sent, secrets and all.
func (t *Traces) RevealHeaders() map[string]string {
	out := make(map[string]string, len(t.Headers))
	for name, value := range t.Headers {
		out[name] = value.Reveal()
	}
	return out
}

// newTraces gives the defaults.
func newTraces() Traces {
	return Traces{Protocol: "grpc", Headers: map[string]Secret{}, SampleRatio: 1}
}
