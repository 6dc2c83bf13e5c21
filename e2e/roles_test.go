package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// targetVar tells the proxy of the benchmark where its backend is.
const targetVar = "IOP_E2E_TARGET"

// benchTokens is how many tokens a streamed answer of the benchmark has.
const benchTokens = 64

// play makes this process one of the benchmark's: a lean backend, or a plain reverse proxy. It ends when stdin does.
func play(role string) int {
	if role == stallerRole {
		return playStaller(os.Getenv(targetVar))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	switch role {
	case "backend":
		go serveLean(l)
	case tricklerRole:
		go serveTrickle(l)
	case "proxy":
		target, err := url.Parse("http://" + os.Getenv(targetVar))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.FlushInterval = -1
		proxy.Transport = &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
		go func() { _ = http.Serve(l, proxy) }()
	default:
		fmt.Fprintln(os.Stderr, "unknown role", role)
		return 2
	}
	fmt.Println(role, "ready address="+l.Addr().String())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// startRole runs this binary in a role and returns the process and its address.
func startRole(t testing.TB, role, target string) (*process, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := spawn(t, role, []string{roleVar + "=" + role, targetVar + "=" + target}, self)
	t.Cleanup(p.kill)
	return p, p.awaitReady(t)["address"]
}

// serveLean answers every request with prepared bytes: as little of the benchmark as possible is the backend.
func serveLean(l net.Listener) {
	body := `{"id":"run-1","object":"chat.completion","created":1,"model":"served/p1","choices":[{"index":0,"message":` +
		`{"role":"assistant","content":"` + strings.Repeat("word ", 40) + `"},"finish_reason":"stop"}]}`
	plain := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
	head := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
	var pieces [][]byte
	for i := range benchTokens {
		pieces = append(pieces, chunked(`data: {"id":"run-1","object":"chat.completion.chunk","created":1,"model":"served/p1",`+
			`"choices":[{"index":0,"delta":{"content":" `+strconv.Itoa(i)+`"},"finish_reason":null}]}`+"\n\n"))
	}
	pieces = append(pieces, append(chunked("data: [DONE]\n\n"), "0\r\n\r\n"...))
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = c.Close() }()
			r := bufio.NewReaderSize(c, 16<<10)
			for {
				stream, err := readLean(r)
				if err != nil {
					return
				}
				if !stream {
					_, err = c.Write(plain)
				} else {
					_, err = c.Write(head)
					for i := 0; i < len(pieces) && err == nil; i++ {
						_, err = c.Write(pieces[i])
					}
				}
				if err != nil {
					return
				}
			}
		}()
	}
}

func chunked(s string) []byte { return []byte(fmt.Sprintf("%x\r\n%s\r\n", len(s), s)) }

// readLean reads a request and tells whether it wants a stream.
func readLean(r *bufio.Reader) (stream bool, err error) {
	n, _, err := readHead(r)
	if err != nil {
		return false, err
	}
	body, err := r.Peek(n)
	if err != nil {
		return false, err
	}
	stream = strings.Contains(string(body), `"stream":true`)
	_, err = r.Discard(n)
	return stream, err
}

// readHead reads a first line and headers, and returns the length of the body (-1 = chunked) and the first line.
func readHead(r *bufio.Reader) (length int, first string, err error) {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0, "", err
		}
		s := strings.TrimRight(string(line), "\r\n")
		if first == "" {
			first = s
			continue
		}
		if s == "" {
			return length, first, nil
		}
		k, v, _ := strings.Cut(s, ":")
		switch {
		case strings.EqualFold(k, "Content-Length"):
			if length, err = strconv.Atoi(strings.TrimSpace(v)); err != nil {
				return 0, "", err
			}
		case strings.EqualFold(k, "Transfer-Encoding"):
			length = -1
		}
	}
}

// lean is a client that does little more than write prepared bytes and read to the end of the answer.
type lean struct {
	c       net.Conn
	r       *bufio.Reader
	request []byte
}

func newLean(address string, request []byte) (*lean, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &lean{c: c, r: bufio.NewReaderSize(c, 16<<10), request: request}, nil
}

// once sends the request and reads the answer, and returns the time that it took.
func (l *lean) once() (time.Duration, error) {
	began := time.Now()
	if _, err := l.c.Write(l.request); err != nil {
		return 0, err
	}
	n, first, err := readHead(l.r)
	if err != nil {
		return 0, err
	}
	if !strings.Contains(first, " 200 ") {
		return 0, fmt.Errorf("answered %q", first)
	}
	if n >= 0 {
		_, err = l.r.Discard(n)
		return time.Since(began), err
	}
	for {
		line, err := l.r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		size, err := strconv.ParseInt(strings.TrimRight(string(line), "\r\n"), 16, 32)
		if err != nil {
			return 0, err
		}
		if _, err := l.r.Discard(int(size) + 2); err != nil {
			return 0, err
		}
		if size == 0 {
			return time.Since(began), nil
		}
	}
}
