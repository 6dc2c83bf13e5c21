package nodepb

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func sample() *Request {
	return &Request{
		Method: "POST", Path: "/v1/a%2Fb?c=d", Run: 7, Lease: 8, Generation: 9, Kind: KindTunnel, Provider: "p", Adapter: "a",
		Served: "org/model: x", TimeoutMS: 1500, Trace: "00-1-2-01", ID: "req_1",
		Header: http.Header{
			"Accept": {"*/*"}, "X-Two": {"1", "2"}, "X-Empty": {""}, "Connection": {"x"}, "Iop-Run": {"99"}, "Bad Name": {"x"},
			"X-Split": {"a\r\nIop-Run: 99"},
		},
		ContentLength: 4,
	}
}

var travels = http.Header{"Accept": {"*/*"}, "X-Two": {"1", "2"}, "X-Empty": {""}}

func TestRequestComesBack(t *testing.T) {
	b, err := AppendRequest(nil, sample())
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, "body"...)
	readers := map[string]*bufio.Reader{
		"at once":        bufio.NewReader(bytes.NewReader(b)),
		"byte by byte":   bufio.NewReader(iotest.OneByteReader(bytes.NewReader(b))),
		"a small buffer": bufio.NewReaderSize(bytes.NewReader(b), 16),
	}
	want := sample()
	want.Header = travels
	for name, br := range readers {
		var got Request
		if err := ReadRequest(br, &got); err != nil {
			t.Fatal(name, err)
		}
		if d := cmp.Diff(want, &got); d != "" {
			t.Error(name, d)
		}
		if rest, _ := io.ReadAll(br); string(rest) != "body" {
			t.Errorf("%s: %q is left", name, rest)
		}
	}
}

// What an edge to come adds is passed over, and not taken for the client's.
func TestUnknownFieldOfOursIsPassedOver(t *testing.T) {
	b, err := AppendRequest(nil, sample())
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.Replace(b, []byte("Iop-Kind:"), []byte("Iop-To-Come: 1\r\nIop-Kind:"), 1)
	var got Request
	if err := ReadRequest(bufio.NewReader(bytes.NewReader(b)), &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(travels, got.Header); d != "" || got.Kind != KindTunnel {
		t.Error(d, got.Kind)
	}
}

// The exchange is HTTP/1.1: net/http understands it as well.
func TestRequestIsHTTP(t *testing.T) {
	b, err := AppendRequest(nil, sample())
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(append(b, "body"...))))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || string(body) != "body" || r.RequestURI != "/v1/a%2Fb?c=d" || r.Header.Get(HeaderServed) != "org/model: x" {
		t.Errorf("%v %q %q %v", err, body, r.RequestURI, r.Header)
	}
}

func answerBytes() []byte {
	b := AppendAnswer(nil, 201, http.Header{"Content-Length": {"11"}, "Content-Type": {"text/plain"}, "Iop-Code": {"forged"}, "Trailer": {"x"}})
	b = AppendChunk(b, []byte("hello "))
	b = AppendChunk(b, nil)
	b = AppendChunk(b, []byte("world"))
	return AppendEnd(b, Outcome{Dispatched: "yes", Code: "backend_broke", Message: "a\nb"})
}

func TestAnswerComesBack(t *testing.T) {
	br := bufio.NewReader(iotest.HalfReader(bytes.NewReader(answerBytes())))
	var head AnswerHead
	if err := ReadAnswer(br, &head); err != nil {
		t.Fatal(err)
	}
	want := AnswerHead{Status: 201, Header: http.Header{"Content-Length": {"11"}, "Content-Type": {"text/plain"}}}
	if d := cmp.Diff(want, head); d != "" {
		t.Error(d)
	}
	var body []byte
	for {
		n, err := ReadChunkStart(br)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		p := make([]byte, n)
		if _, err := io.ReadFull(br, p); err != nil {
			t.Fatal(err)
		}
		body = append(body, p...)
		if err := ReadChunkEnd(br); err != nil {
			t.Fatal(err)
		}
	}
	var o Outcome
	if err := ReadEnd(br, &o); err != nil {
		t.Fatal(err)
	}
	if string(body) != "hello world" || o != (Outcome{"yes", "backend_broke", "a b"}) {
		t.Errorf("%q %+v", body, o)
	}
}

func TestAnswerIsHTTP(t *testing.T) {
	r, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(answerBytes())), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || string(body) != "hello world" || r.StatusCode != 201 || r.Header.Get(HeaderLength) != "11" {
		t.Errorf("%v %q %+v", err, body, r)
	}
	if r.Trailer.Get(HeaderCode) != "backend_broke" {
		t.Errorf("%v", r.Trailer)
	}
}

func TestOutcomeWithoutAHead(t *testing.T) {
	want := Outcome{Dispatched: "no", Code: "connect_failed", Message: strings.Repeat("m", MessageMax)}
	o := want
	o.Message += "cut off"
	var head AnswerHead
	if err := ReadAnswer(bufio.NewReader(bytes.NewReader(AppendOver(nil, o))), &head); err != nil {
		t.Fatal(err)
	}
	if !head.Over || head.Outcome != want {
		t.Errorf("%+v", head)
	}
}

func TestMalformedRequests(t *testing.T) {
	good := "POST / HTTP/1.1\r\nIop-Run: 1\r\nContent-Length: 0\r\n\r\n"
	var r Request
	if err := ReadRequest(bufio.NewReader(strings.NewReader(good)), &r); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		"POST /\r\n\r\n",
		"POST / HTTP/2.0\r\nIop-Run: 1\r\nContent-Length: 0\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
		"POST / HTTP/1.1\r\nIop-Run: 1\r\n\r\n",
		"POST / HTTP/1.1\r\nIop-Run: -1\r\nContent-Length: 0\r\n\r\n",
		"POST / HTTP/1.1\r\nIop-Run: 1\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"POST / HTTP/1.1\r\nIop-Run: 1\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
		"POST / HTTP/1.1\r\nIop-Run: 1\r\nno colon\r\nContent-Length: 0\r\n\r\n",
		"POST / HTTP/1.1\r\nIop-Run: 1\r\nContent-Length: 0\r\n folded\r\n\r\n",
	} {
		if err := ReadRequest(bufio.NewReader(strings.NewReader(bad)), &r); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, cut := range []int{0, 1, 20, len(good) - 1} {
		if err := ReadRequest(bufio.NewReader(strings.NewReader(good[:cut])), &r); !errors.Is(err, io.EOF) {
			t.Errorf("%q: %v", good[:cut], err)
		}
	}
	endless := io.MultiReader(strings.NewReader("POST / HTTP/1.1\r\n"), iotest.OneByteReader(zeroes{}))
	if err := ReadRequest(bufio.NewReader(endless), &r); !errors.Is(err, ErrHeadTooLarge) {
		t.Error(err)
	}
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func TestMalformedChunksAndEnds(t *testing.T) {
	for _, bad := range []string{"\r\n", "g\r\n", "5\n", "-1\r\n", "fffffffff\r\n", "40000001\r\n", "5;x=y\r\n"} {
		if n, err := ReadChunkStart(bufio.NewReader(strings.NewReader(bad))); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %d %v", bad, n, err)
		}
	}
	if _, err := ReadChunkStart(bufio.NewReader(strings.NewReader("5"))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if err := ReadChunkEnd(bufio.NewReader(strings.NewReader("xx"))); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
	var o Outcome
	for _, bad := range []string{"\r\n", "Iop-Code: x\r\n\r\n", "no colon\r\n\r\n", "Iop-Dispatched: yes\n\n"} {
		if err := ReadEnd(bufio.NewReader(strings.NewReader(bad)), &o); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	// A backend that broke is never a clean end: a cut in the trailers is an error.
	if err := ReadEnd(bufio.NewReader(strings.NewReader("Iop-Dispatched: yes\r\n")), &o); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func TestNextChunk(t *testing.T) {
	for _, test := range []struct {
		in       string
		start, n int
	}{
		{"\r\n5\r\nhello", 5, 5},
		{"\r\n5\r\nhello\r\n0\r\n", 5, 5},
		{"\r\n10\r\n0123456789abcdef", 6, 16},
		{"\r\n5\r\nhell", 0, 0},
		{"\r\n0\r\n\r\n", 5, 0},
		{"\r\n5\r", 0, 0},
		{"\r\n\r\nabcdef", 0, 0},
		{"\r\nx\r\nabcdef", 0, 0},
		{"hello there", 0, 0},
		{"", 0, 0},
	} {
		start, n := NextChunk([]byte(test.in))
		if n != test.n || n > 0 && start != test.start {
			t.Errorf("%q: %d %d", test.in, start, n)
		}
	}
}

func TestHandshake(t *testing.T) {
	h := Handshake{Node: "a node/ü", Generation: 1 << 60, Secret: bytes.Repeat([]byte{0xa5}, SecretLen)}
	line := AppendHandshake(nil, h)
	rest, ok := bytes.CutPrefix(line, []byte(DataPreface))
	if !ok {
		t.Fatalf("%q", line)
	}
	got, err := ReadHandshake(iotest.OneByteReader(bytes.NewReader(rest)))
	if d := cmp.Diff(h, got); err != nil || d != "" {
		t.Error(err, d)
	}
	for _, bad := range []string{
		"", "n 1\n", "n x " + strings.Repeat("00", SecretLen) + "\n", "n 1 00\n", "n 1 zz\n", "%zz 1 " + strings.Repeat("00", SecretLen) + "\n",
		string(rest) + "GET", strings.Repeat("n", 2*HandshakeMax),
	} {
		if _, err := ReadHandshake(strings.NewReader(bad)); err == nil {
			t.Errorf("%.60q passes", bad)
		}
	}
}

// FuzzAnswer: whatever a node sends, reading it neither panics nor goes on without end.
func FuzzAnswer(f *testing.F) {
	f.Add(answerBytes())
	f.Add(AppendOver(nil, Outcome{Dispatched: "no"}))
	f.Fuzz(func(_ *testing.T, b []byte) {
		br := bufio.NewReaderSize(bytes.NewReader(b), 64)
		var head AnswerHead
		if ReadAnswer(br, &head) != nil || head.Over {
			return
		}
		for {
			n, err := ReadChunkStart(br)
			if err != nil {
				return
			}
			if n == 0 {
				var o Outcome
				_ = ReadEnd(br, &o)
				return
			}
			if _, err := br.Discard(n); err != nil || ReadChunkEnd(br) != nil {
				return
			}
		}
	})
}

// FuzzRequest: what can be read can be sent on, and means the same.
func FuzzRequest(f *testing.F) {
	b, _ := AppendRequest(nil, sample())
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var r, again Request
		if ReadRequest(bufio.NewReader(bytes.NewReader(b)), &r) != nil {
			return
		}
		out, err := AppendRequest(nil, &r)
		if err != nil {
			return
		}
		if err := ReadRequest(bufio.NewReader(bytes.NewReader(out)), &again); err != nil {
			t.Fatalf("%v\n%q\n%q", err, b, out)
		}
		if again.Run != r.Run || again.Path != r.Path || again.ContentLength != r.ContentLength {
			t.Fatalf("%+v\n%+v", r, again)
		}
	})
}
