package openai

import (
	"strings"
	"testing"
)

// TestAMillionFakePictures: looking for the size of a picture allocates, so a body full of fake ones must not cost
// seconds; those beyond imagesMax count like one whose size can't be told.
func TestAMillionFakePictures(t *testing.T) {
	scan := func(n int) int64 {
		var s scanner
		body := []byte(`{"model":"m","messages":[` + strings.Repeat(`{"url":"data:,aaaa"},`, n) + `1]}`)
		allocs := testing.AllocsPerRun(1, func() {
			if err := s.scan(body); err != nil {
				t.Fatal(err)
			}
		})
		if want := int64(n)*remoteImage + 1; s.text.tokens() != want {
			t.Errorf("%d pictures: %d tokens, want %d", n, s.text.tokens(), want)
		}
		return int64(allocs)
	}
	if few, many := scan(imagesMax), scan(20*imagesMax); many > few+few/10 {
		t.Errorf("%d allocations for %d pictures, %d for 20 times as many", few, imagesMax, many)
	}
}
