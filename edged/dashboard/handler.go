package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed page
var page embed.FS

// kinds are the types of the page's files by their ends. A file of another kind is not served.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// asset is a file of the page.
type asset struct {
	body []byte
	kind string
	tag  string // its ETag: another build's file has another one
}

// Handler serves the page at "/" and its parts below "/ui/", by GET and HEAD; everything else is 404. A browser keeps the
// files and asks each time whether they are still those of the running edge, so an upgrade is seen at the next load.
func Handler() http.Handler {
	assets := readAssets(page)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protect(w.Header())
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "use GET", http.StatusMethodNotAllowed)
			return
		}
		a, ok := assets[r.URL.Path]
		if !ok {
			w.Header().Set("Cache-Control", "no-store")
			http.Error(w, "the dashboard has no such file; it is at /", http.StatusNotFound)
			return
		}
		h := w.Header()
		h.Set("Content-Type", a.kind)
		h.Set("ETag", a.tag)
		h.Set("Cache-Control", "no-cache") // keep it, but ask before each use
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.body))
	})
}

// readAssets gives the files by the paths of their URLs.
func readAssets(files fs.FS) map[string]asset {
	out := map[string]asset{}
	// The files are part of the program: they can always be read.
	_ = fs.WalkDir(files, "page", func(name string, d fs.DirEntry, err error) error {
		kind, known := kinds[path.Ext(name)]
		if err != nil || d.IsDir() || !known {
			return err
		}
		body, err := fs.ReadFile(files, name)
		sum := sha256.Sum256(body)
		url := strings.TrimPrefix(name, "page")
		if url == "/index.html" {
			url = "/"
		}
		out[url] = asset{body: body, kind: kind, tag: `"` + hex.EncodeToString(sum[:12]) + `"`}
		return err
	})
	return out
}
