package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"iop/configs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at starts a server that answers GET /v1/models, and gives the place where it is.
func at(t *testing.T, id string, status int, body string) place {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			t.Errorf("%s was asked for %s", id, r.URL.Path)
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return place{port: s.Listener.Addr().(*net.TCPAddr).Port, id: id, kind: configs.ProviderOpenAI, name: "server"}
}

func TestDetect(t *testing.T) {
	nobody := at(t, "nobody", 200, "")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	silent := place{port: l.Addr().(*net.TCPAddr).Port, id: "silent"}
	got := detect(t.Context(), []place{
		at(t, "plain", 200, `{"object":"list","data":[{"id":"m1","object":"model"},{"id":"m2"}]}`),
		at(t, "llama", 200, `{"data":[{"id":"m3","owned_by":"llamacpp"}]}`),
		at(t, "vllm", 200, `{"data":[{"id":"m4","owned_by":"vllm"}]}`),
		at(t, "page", 200, `<html>`),
		at(t, "missing", 404, `{"data":[{"id":"m5"}]}`),
		at(t, "none", 200, `{"data":[]}`),
		at(t, "odd names", 200, `{"data":[{"id":""},{"id":"demo"},{"id":"${HOME}"},{"id":"a\u001b[31m"},{"id":"`+strings.Repeat("x", 5000)+`"}]}`),
		nobody, silent,
	})
	var words []string
	for _, f := range got {
		words = append(words, fmt.Sprint(f.id, " ", f.kind, " ", f.models))
	}
	want := []string{"plain openai_compat [m1 m2]", "llama llamacpp [m3]", "vllm vllm [m4]"}
	if diff := cmp.Diff(want, words); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Our own ports are not looked at.
func TestPlaces(t *testing.T) {
	for _, p := range places(8080, 9080) {
		if p.port == 8080 {
			t.Error("8080 is ours")
		}
	}
	if n := len(places()); n != 5 {
		t.Errorf("%d places", n)
	}
}
