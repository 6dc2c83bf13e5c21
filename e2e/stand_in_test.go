package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
)

// guideForwardCommand makes the test binary the stand-in for llama-server: it forwards connections to the test's backend.
const guideForwardCommand = "guide-forward"

// playGuideForward listens at one address for the server at another, until it is killed.
func playGuideForward(to, at string) int {
	l, err := net.Listen("tcp", at)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("main: server is listening on http://" + at)
	for {
		client, err := l.Accept()
		if err != nil {
			return 1
		}
		go guideForward(client, to)
	}
}

func guideForward(client net.Conn, to string) {
	server, err := net.Dial("tcp", to)
	if err != nil {
		_ = client.Close()
		return
	}
	ended := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			ended <- struct{}{}
		}()
	}
	<-ended
	_, _ = client.Close(), server.Close()
	<-ended
}
