package edged

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestPanicOfAHandlerIsVisible: at the usual level of the log a panic shows, and what clients do wrong does not.
func TestPanicOfAHandlerIsVisible(t *testing.T) {
	var said bytes.Buffer
	logger := newHTTPLog(slog.New(slog.NewTextHandler(&said, nil)))
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a fault of ours") }))
	s.Config.ErrorLog = logger
	s.Start()
	if res, err := http.Get(s.URL); err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	s.Close()
	logger.Print("http: TLS handshake error from 1.2.3.4")
	if got := said.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "a fault of ours") || strings.Contains(got, "handshake") {
		t.Error(got)
	}
}
