package talk

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"iop/noded/adapter/ollama/recorded"
)

// Stage is a point in a run at which a server or a command stops going on, until it is killed.
type Stage string

// The stages, in their order.
const (
	Connected  Stage = "connected"  // the connection is taken, or the command runs; nothing has been read
	BeforeHead Stage = "beforehead" // all has been read, nothing said
	AfterHead  Stage = "afterhead"  // status and headers are out
	MidStream  Stage = "midstream"  // so is the first piece
	BeforeEnd  Stage = "beforeend"  // so is all but the end
)

// StallAt writes a user's text that stops a run at a stage, when it gets there leaves a file of that name, and in it the
// pid of who has stopped.
func StallAt(s Stage, name string) string { return fmt.Sprintf("stall:%s trace:%s.", s, name) }

// Staller is a server, OpenAI's and Ollama's at once, whose runs stop where they are told to.
type Staller struct {
	Dir string // of the traces
}

// stallOf finds where a run is to stop, and its name.
func stallOf(text []byte) (stage Stage, name string) {
	_, rest, found := strings.Cut(string(text), "stall:")
	if !found {
		return "", ""
	}
	s, rest, _ := strings.Cut(rest, " trace:")
	name, _, _ = strings.Cut(rest, ".")
	return Stage(s), name
}

func trace(dir, name string) {
	half := filepath.Join(dir, ".half-"+name)
	if os.WriteFile(half, []byte(strconv.Itoa(os.Getpid())), 0o600) == nil {
		_ = os.Rename(half, filepath.Join(dir, name))
	}
}

// Mute takes connections and reads nothing: each leaves a file mute-N. It returns when the listener is closed.
func (s *Staller) Mute(l net.Listener) {
	var taken []net.Conn
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		taken = append(taken, c)
		trace(s.Dir, "mute-"+strconv.Itoa(len(taken)))
	}
}

// Serve answers requests, or stops in them. It returns when the listener is closed.
func (s *Staller) Serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go s.serve(c)
	}
}

func (s *Staller) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	for r := bufio.NewReader(c); ; {
		q, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return
		}
		pieces := spokenPieces(q.URL.Path, body)
		stage, name := stallOf(body)
		stop := map[Stage]int{BeforeHead: 0, AfterHead: 1, MidStream: 2, BeforeEnd: len(pieces) - 1}
		until, stalls := stop[stage]
		if !stalls {
			until = len(pieces)
		}
		if _, err := io.WriteString(c, strings.Join(pieces[:until], "")); err != nil {
			return
		}
		if stalls {
			trace(s.Dir, name)
			_, _ = r.ReadByte() // until the caller leaves, or this process is killed
			return
		}
	}
}

// spokenPieces are the bytes of an answer: the head, pieces, and the end.
func spokenPieces(path string, body []byte) []string {
	switch {
	case strings.HasPrefix(path, "/api/"):
		return chunkedAnswer("application/x-ndjson", recorded.Said1+"\n", recorded.Said2+"\n", recorded.DoneStop+"\n")
	case bytes.Contains(body, []byte(`"stream":true`)):
		q := request{Model: "stalled"}
		head := "data: " + head(&q, "chat.completion.chunk")
		return chunkedAnswer("text/event-stream",
			head+`{"index":0,"delta":{"role":"assistant","content":`+quoted(FirstPiece)+`},"finish_reason":null}]}`+"\n\n",
			head+`{"index":0,"delta":{"content":`+quoted(SecondPiece)+`},"finish_reason":null}]}`+"\n\n",
			head+`{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n", "data: [DONE]\n\n")
	}
	q := request{Model: "stalled"}
	whole := head(&q, "chat.completion") + q.say(None).choice(0, true) + `],"usage":` + usage + "}"
	half, last := len(whole)/2, len(whole)-1
	return []string{
		fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(whole)),
		whole[:half], whole[half:last], whole[last:],
	}
}

// chunkedAnswer frames an answer; its last piece goes with the last chunk.
func chunkedAnswer(kind string, pieces ...string) []string {
	out := []string{"HTTP/1.1 200 OK\r\nContent-Type: " + kind + "\r\nTransfer-Encoding: chunked\r\n\r\n"}
	for _, p := range pieces {
		out = append(out, fmt.Sprintf("%x\r\n%s\r\n", len(p), p))
	}
	out[len(out)-1] += "0\r\n\r\n"
	return out
}

// StallingAgent is Agent, but it stops where a prompt tells it to; mute before it has read any.
func StallingAgent(in io.Reader, out io.Writer, dir string, mute bool) int {
	if mute {
		trace(dir, "mute-"+strconv.Itoa(os.Getpid()))
		time.Sleep(time.Hour)
	}
	prompt, err := io.ReadAll(in)
	if err != nil {
		return 1
	}
	stage, name := stallOf(prompt)
	stop := map[Stage]int{BeforeHead: 0, MidStream: 1, BeforeEnd: 2}
	until, stalls := stop[stage]
	if !stalls {
		return Agent(bytes.NewReader(prompt), out)
	}
	for _, p := range []string{FirstPiece, SecondPiece}[:until] {
		_, _ = fmt.Fprintf(out, "{\"delta\":%s}\n", quoted(p))
	}
	trace(dir, name)
	time.Sleep(time.Hour)
	return 1
}
