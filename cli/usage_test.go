package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestUsageOfADay: the question that is asked most is about yesterday, and needs no arithmetic.
func TestUsageOfADay(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Query().Get("from") + " to " + r.URL.Query().Get("to")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"by":["principal"],"rows":[]}`)
	}))
	defer s.Close()
	for _, c := range []struct {
		args     []string
		from, to int // days from today
	}{
		{[]string{"--day", "yesterday"}, -1, -1},
		{[]string{"--day", "today"}, 0, 0},
		{[]string{"--from", "yesterday", "--to", "today"}, -1, 0},
	} {
		day := func(n int) string { return time.Now().UTC().AddDate(0, 0, n).Format(time.DateOnly) }
		before := day(c.from) + " to " + day(c.to)
		code, out, errs := run(t, append([]string{"usage", "--by", "principal", "--edge", s.URL}, c.args...)...)
		if code != 0 {
			t.Fatalf("%v: %d %s%s", c.args, code, out, errs)
		}
		if got, after := <-asked, day(c.from)+" to "+day(c.to); got != before && got != after { // midnight may come between
			t.Errorf("%v asked for %s, not %s", c.args, got, after)
		}
	}
	for _, args := range [][]string{{"--day", "yesterday", "--from", "today"}, {"--from", "2026-01-31", "--to", "2026-01-30"}, {"--day", "tomorrow"}} {
		if code, out, errs := run(t, append([]string{"usage", "--edge", s.URL}, args...)...); code != 2 {
			t.Errorf("%v: %d %s%s", args, code, out, errs)
		} else if args[1] > "2026-01-30" && args[0] == "--from" && !strings.Contains(errs, "is before the first") {
			t.Errorf("%v: %s", args, errs)
		}
	}
}
