package top

import (
	"fmt"
	"strings"
)

// bar shows how much of something is in use, with its numbers: "███░ 3/4". all nil = no bound, which has no bar.
func (s *scene) bar(used int, all *int, width int) string {
	if all == nil {
		return fmt.Sprintf("%d/%s", used, s.glyphs.infinite)
	}
	numbers := fmt.Sprintf(" %d/%d", used, *all)
	return s.gauge(used, *all, min(width-len(numbers), barMax)) + numbers
}

// barMax is the width beyond which a bar tells no more.
const barMax = 20

// gauge draws a bar. Anything in use shows, and only all in use is full.
func (s *scene) gauge(used, all, width int) string {
	if width <= 0 {
		return ""
	}
	n := 0
	if all > 0 {
		n = min(used*width/all, width)
	}
	if used > 0 && n == 0 {
		n = 1
	}
	if used < all && n == width && width > 1 {
		n--
	}
	return strings.Repeat(s.glyphs.full, n) + strings.Repeat(s.glyphs.empty, width-n)
}
