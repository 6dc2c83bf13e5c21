package dashboard_test

import (
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"iop/edged/dashboard"
)

func get(t *testing.T, method, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	dashboard.Handler().ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPolicyIsOnEveryAnswer: also on those that are errors.
func TestPolicyIsOnEveryAnswer(t *testing.T) {
	for path, status := range map[string]int{"/": 200, "/ui/main.js": 200, "/ui/nothing.js": 404, "/ui/": 404, "/ui/../index.html": 404, "/index.html": 404} {
		r := get(t, http.MethodGet, path)
		if r.StatusCode != status {
			t.Errorf("%s: %s, want %d", path, r.Status, status)
		}
		policy := r.Header.Get("Content-Security-Policy")
		for _, want := range []string{
			"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'", "font-src 'self'",
			"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
		} {
			if !strings.Contains(policy+";", want+";") {
				t.Errorf("%s: the policy lacks %q: %s", path, want, policy)
			}
		}
		if strings.Contains(policy, "unsafe") || r.Header.Get("X-Content-Type-Options") != "nosniff" || r.Header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %v", path, r.Header)
		}
	}
}

// TestUpgradesAreSeen: a browser asks before it uses what it kept, and gets nothing as long as it is the same.
func TestUpgradesAreSeen(t *testing.T) {
	first := get(t, http.MethodGet, "/ui/main.js")
	tag := first.Header.Get("ETag")
	if tag == "" || first.Header.Get("Cache-Control") != "no-cache" {
		t.Fatalf("%v", first.Header)
	}
	if r := get(t, http.MethodGet, "/ui/main.js", "If-None-Match", tag); r.StatusCode != http.StatusNotModified || text(t, r) != "" {
		t.Errorf("the same again: %s", r.Status)
	}
	if r := get(t, http.MethodGet, "/ui/main.js", "If-None-Match", `"another"`); r.StatusCode != http.StatusOK {
		t.Errorf("another: %s", r.Status)
	}
	if other := get(t, http.MethodGet, "/ui/dom.js").Header.Get("ETag"); other == tag {
		t.Error("two files have one tag")
	}
	if r := get(t, http.MethodGet, "/ui/nothing.js"); r.Header.Get("Cache-Control") != "no-store" {
		t.Error("that there is no such file would be kept")
	}
}

func TestMethods(t *testing.T) {
	if r := get(t, http.MethodHead, "/"); r.StatusCode != 200 || text(t, r) != "" {
		t.Errorf("HEAD: %s", r.Status)
	}
	if r := get(t, http.MethodPost, "/"); r.StatusCode != http.StatusMethodNotAllowed || r.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %s %v", r.Status, r.Header)
	}
}

var (
	reference = regexp.MustCompile(`(?:href|src)="(/[^"#]*)"`)
	imported  = regexp.MustCompile(`from "\./([^"]+)"`)
	// What makes markup or code of strings, and what would go elsewhere.
	forbidden = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|setAttribute\("style"|localStorage|document\.cookie`)
	elsewhere = regexp.MustCompile(`https?://[^\s"']+`)
)

// TestPageIsWhole: all that is referred to is there and of the right kind, all that is there is referred to, nothing is
// inline, nothing refers elsewhere and nothing makes markup of strings.
func TestPageIsWhole(t *testing.T) {
	index := text(t, get(t, http.MethodGet, "/"))
	if regexp.MustCompile(`<script(?:[^>]*)>[^<]|<style|\sstyle=|\son\w+=`).MatchString(index) {
		t.Error("index.html has something inline, which its policy forbids")
	}
	used := map[string]bool{}
	var follow func(string)
	follow = func(path string) {
		if used[path] {
			return
		}
		used[path] = true
		r := get(t, http.MethodGet, path)
		body := text(t, r)
		if r.StatusCode != 200 {
			t.Errorf("%s is referred to: %s", path, r.Status)
		}
		if strings.HasSuffix(path, ".js") && !strings.HasPrefix(r.Header.Get("Content-Type"), "text/javascript") {
			t.Errorf("%s is %s", path, r.Header.Get("Content-Type"))
		}
		if bad := forbidden.FindString(body); bad != "" {
			t.Errorf("%s has %s", path, bad)
		}
		if out := elsewhere.FindString(body); out != "" && out != "http://www.w3.org/2000/svg" {
			t.Errorf("%s refers to %s", path, out)
		}
		for _, m := range imported.FindAllStringSubmatch(body, -1) {
			follow("/ui/" + m[1])
		}
	}
	for _, m := range reference.FindAllStringSubmatch(index, -1) {
		follow(m[1])
	}
	err := fs.WalkDir(os.DirFS("page"), "ui", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !used["/"+name] {
			t.Errorf("%s is served and nothing refers to it", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
