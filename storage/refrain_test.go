package storage

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestRefrainSaysEachTextOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r refrain
		said := ""
		for i := range 700 { // 70 seconds, ten times a second
			text := "a"
			if i >= 50 {
				text = "b"
			}
			if r.speak(text) {
				said += text
			}
			time.Sleep(100 * time.Millisecond)
		}
		if said != "abb" {
			t.Errorf("said %q, not a, b, and b again after a minute", said)
		}
	})
}
