package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"iop/configs"
)

const healthUsage = `Usage: edged health [--config FILE] [--ready] [--timeout 3s]

Asks the edge of the file, on this machine, whether it is alive; with --ready whether it takes requests, which it does not without
a leader. It is for images that have no shell and no curl.

Exit codes: 0 it is, 1 it is not, or does not answer, 2 bad usage or a bad configuration.

`

// health asks the edge of a file how it is.
func health(args []string, stdout, stderr io.Writer, env configs.Env) int {
	var file string
	var ready bool
	var timeout time.Duration
	set := flag.NewFlagSet("edged health", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.Usage = func() {
		_, _ = io.WriteString(stderr, healthUsage) // nobody is left to tell
		set.PrintDefaults()
	}
	set.StringVar(&file, "config", "", "edge file (or IOP_CONFIG)")
	set.BoolVar(&ready, "ready", false, "ask /readyz, not /healthz")
	set.DurationVar(&timeout, "timeout", 3*time.Second, "how long it may take to answer")
	switch err := set.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	}
	if file == "" {
		file, _ = env("IOP_CONFIG")
	}
	if file == "" || set.NArg() > 0 || timeout <= 0 {
		set.Usage()
		return exitUsage
	}
	config, _, err := configs.LoadEdge(file, env)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return exitUsage
	}
	path := "/healthz"
	if ready {
		path = "/readyz"
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	said, err := ask(ctx, &config.Edge, path)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "edged health: "+err.Error())
		return exitFailed
	}
	return say(stdout, said)
}

// healthBytes bounds what is read of an answer.
const healthBytes = 4096

// ask has the edge's openai listener answer path. An answer that is not 200 is an error.
func ask(ctx context.Context, e *configs.Self, path string) (string, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	scheme := "http"
	if e.TLS.OpenAI {
		scheme = "https"
		security, err := itself(e.TLS.Cert)
		if err != nil {
			return "", err
		}
		transport.TLSClientConfig = security
	}
	address, err := here(e.Listen.OpenAI)
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+address+path, nil)
	if err != nil {
		return "", fmt.Errorf("ask the edge: %w", err)
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return "", fmt.Errorf("ask the edge: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, healthBytes))
	if err != nil {
		return "", fmt.Errorf("ask the edge: %w", err)
	}
	said := strings.TrimSpace(string(text))
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the edge answers %d: %s", answer.StatusCode, said)
	}
	return said, nil
}

// here is where a listener is reached from its own machine.
func here(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("edge.listen.openai: %w", err)
	}
	if port == "0" {
		return "", errors.New("edge.listen.openai has port 0, so the edge alone knows where it listens")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port), nil
}

// itself accepts the edge's own certificate, whatever names it has, and no other.
func itself(file string) (*tls.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("edge.tls.cert: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("edge.tls.cert: %s has no certificate", file)
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // no authority and no name is asked, since the certificate itself is known
		VerifyPeerCertificate: func(chain [][]byte, _ [][]*x509.Certificate) error {
			if len(chain) == 0 || !bytes.Equal(chain[0], block.Bytes) {
				return errors.New("what answers there has another certificate than edge.tls.cert")
			}
			return nil
		},
	}, nil
}
