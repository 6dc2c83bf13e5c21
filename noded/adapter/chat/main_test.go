package chat_test

import (
	"flag"
	"net/http"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite testdata")
	flag.Parse()
	os.Exit(m.Run())
}

// nothing is an Answer that forgets.
type nothing struct{}

func (nothing) Head(int, http.Header) error { return nil }
func (nothing) Data([]byte) error           { return nil }
