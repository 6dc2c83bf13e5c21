package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	docsLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	docsFence   = regexp.MustCompile("(?ms)^```.*?^```$")
	docsHeading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	docsAnchor  = regexp.MustCompile(`[^a-z0-9 _-]+`)
)

// TestLinksOfDocsLead: each link between pages names a file that is there, and a heading that is in it; each alert's page is
// there too.
func TestLinksOfDocsLead(t *testing.T) {
	t.Parallel()
	pages := []string{"../README.md"}
	for _, p := range []string{"../docs/*.md", "../docs/*/*.md"} {
		found, err := filepath.Glob(p)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	links := 0
	for _, page := range pages {
		text := docsFence.ReplaceAllString(docsRead(t, page), "")
		for _, m := range docsLink.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(m[1], "#")
			at := page
			if file != "" {
				at = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(at); err != nil {
				t.Errorf("%s: %s leads nowhere", page, m[1])
			} else if anchor != "" && !docsHas(t, at, anchor) {
				t.Errorf("%s: %s has no heading %q", page, m[1], anchor)
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were found", links)
	}
	for _, m := range regexp.MustCompile(`docs/failures/[\w-]+\.md`).FindAllString(docsRead(t, "../configs/prometheus/rules.yaml"), -1) {
		if _, err := os.Stat(filepath.Join("..", m)); err != nil {
			t.Errorf("an alert names %s: %v", m, err)
		}
	}
}

func docsRead(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// docsHas tells whether a page has a heading of that anchor.
func docsHas(t *testing.T, page, anchor string) bool {
	t.Helper()
	for _, m := range docsHeading.FindAllStringSubmatch(docsFence.ReplaceAllString(docsRead(t, page), ""), -1) {
		if strings.ReplaceAll(docsAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-") == anchor {
			return true
		}
	}
	return false
}
