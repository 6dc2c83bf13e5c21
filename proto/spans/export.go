package spans

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/credentials"
)

// Ports of OTLP, for an endpoint that has none.
const (
	portGRPC = "4317"
	portHTTP = "4318"
)

// schemeTLS is the scheme of an endpoint that is reached over TLS.
const schemeTLS = "https"

// newExporter builds the client of a collector. Every option is given, since what is not given is taken from the
// environment. There are no retries: what is lost is counted, and a request's spans are not worth keeping others waiting.
func newExporter(o *Options) (sdk.SpanExporter, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != schemeTLS {
		return nil, fmt.Errorf("endpoint %q is no http(s)://host:port", o.Endpoint)
	}
	security, err := tlsConfig(o.CA)
	if err != nil {
		return nil, err
	}
	if o.Protocol == ProtocolHTTP {
		return started(overHTTP(o, u, security))
	}
	return started(overGRPC(o, u, security))
}

func overHTTP(o *Options, u *url.URL, security *tls.Config) otlptrace.Client {
	path := u.Path
	if path == "" || path == "/" {
		path = "/v1/traces"
	}
	options := []otlptracehttp.Option{
		otlptracehttp.WithEndpoint(hostPort(u, portHTTP)), otlptracehttp.WithURLPath(path), otlptracehttp.WithHeaders(headersOf(o)),
		otlptracehttp.WithTimeout(o.Timeout), otlptracehttp.WithCompression(otlptracehttp.GzipCompression),
		otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}),
	}
	if u.Scheme == schemeTLS {
		return otlptracehttp.NewClient(append(options, otlptracehttp.WithTLSClientConfig(security))...)
	}
	return otlptracehttp.NewClient(append(options, otlptracehttp.WithInsecure())...)
}

func overGRPC(o *Options, u *url.URL, security *tls.Config) otlptrace.Client {
	options := []otlptracegrpc.Option{
		otlptracegrpc.WithEndpoint(hostPort(u, portGRPC)), otlptracegrpc.WithHeaders(headersOf(o)), otlptracegrpc.WithTimeout(o.Timeout),
		otlptracegrpc.WithCompressor("gzip"), otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{}),
	}
	if u.Scheme == schemeTLS {
		return otlptracegrpc.NewClient(append(options, otlptracegrpc.WithTLSCredentials(credentials.NewTLS(security)))...)
	}
	return otlptracegrpc.NewClient(append(options, otlptracegrpc.WithInsecure())...)
}

// headersOf is not nil, which would mean those of the environment.
func headersOf(o *Options) map[string]string {
	if o.Headers == nil {
		return map[string]string{}
	}
	return o.Headers
}

// started makes a client an exporter. It dials with the first export.
func started(c otlptrace.Client) (sdk.SpanExporter, error) {
	e, err := otlptrace.New(context.Background(), c)
	if err != nil {
		return nil, fmt.Errorf("exporter: %w", err)
	}
	return e, nil
}

func hostPort(u *url.URL, port string) string {
	if u.Port() != "" {
		port = u.Port()
	}
	return net.JoinHostPort(u.Hostname(), port)
}

func tlsConfig(ca string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca == "" {
		return c, nil
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New("ca: there is no certificate in " + ca)
	}
	return c, nil
}
