//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"iop/e2e/backend"
)

// TestDiskFull: when a write of the log fails, the edge admits nothing more and says so; no request is answered as if it
// had been recorded; with space again, a restart finds everything that was acknowledged. It needs the right to mount.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("can't mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	b := newBackend(t, backend.Options{Default: backend.Plan{Tokens: 4, Hold: backend.AfterTokens, At: 1}})
	l := shared(b, 4)
	l.throttled, l.reattach = true, 2*time.Second
	l.providers = append(l.providers, provider{id: "p2", url: b.URL()})
	l.models["other"] = []string{"p2"}
	w := newEmptyWorld(t, l)
	if err := os.Symlink(filepath.Join(disk, "data"), w.dataDir()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(disk, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.startEdge()
	w.startNode("n1")
	w.awaitLink("n1")
	s := w.open(ask{tag: "running"})
	s.next()
	lease := w.awaitLeases(1)[0]
	holder := w.start(ask{tag: "holder", model: "other"})
	w.awaitLeases(2)
	waiter := w.queue(ask{tag: "waiter", model: "other"}, 1)
	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)

	// Requests go on until the log needs space; from then on none is admitted.
	var refused answer
	n := 0
	await(t, "the edge refuses or ends", func() bool {
		n++
		f := w.start(ask{tag: fmt.Sprint("r", n), prompt: longPrompt[:1000]})
		b.LetTag(fmt.Sprint("r", n))
		await(t, "an answer, or a run that waits", func() bool { b.LetTag(f.ask.tag); return f.over() })
		refused = f.got
		return refused.status != 200
	})
	if refused.status != 0 && refused.status != 503 {
		t.Errorf("with a full disk: %d: %s", refused.status, refused.body)
	}
	await(t, "the edge names the disk as the cause", func() bool { return containsAny(w.edge.out.String(), "no space left", "disk") })
	// Nobody can be granted a slot any more, so who waits is told at once, not when the last run has ended.
	sent := waiter.wait(t)
	sent.wantError(t, 503, "stopping")
	b.LetTag("holder")
	done := holder.wait(t)
	done.want(t, 200)
	// What runs is kept: the stream goes on to its end, though its end can't be recorded any more.
	b.LetTag("running")
	if all, clean := s.rest(); !clean || all[len(all)-1] != "[DONE]" {
		t.Errorf("the running stream was not finished: clean %v, %q", clean, all)
	}
	if code := w.edge.code(t); code != 1 {
		t.Errorf("edged ended with code %d, want 1", code)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	m := inspect(t, w.dataDir())
	if _, ok := m.Lease(leaseID(lease.ID)); !ok {
		t.Errorf("the lease %d of a running stream is lost", lease.ID)
	}
	b.LetAll()
	w.restartEdge()
	w.awaitLink("n1")
	w.awaitPending(0)
	w.want(200, ask{tag: "after"})
	w.awaitIdle()
}

// fill writes a file until its disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for _, size := range []int{1 << 20, 4096} {
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		err = nil
	}
}
