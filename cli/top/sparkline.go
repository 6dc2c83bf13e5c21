package top

import "strings"

// sparkline draws values, the newest last, each as high as its share of the highest; nil = nothing happened then. It is
// width columns wide; what is older than fits is not drawn.
func (s *scene) sparkline(values []*float64, width int) string {
	if width <= 0 {
		return ""
	}
	values = values[max(0, len(values)-width):]
	most := highest(values)
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", width-len(values)))
	for _, v := range values {
		if v == nil {
			b.WriteByte(' ')
			continue
		}
		level := 0
		if most > 0 {
			level = int(*v / most * float64(len(s.glyphs.spark)-1))
		}
		b.WriteRune(s.glyphs.spark[min(max(level, 0), len(s.glyphs.spark)-1)])
	}
	return b.String()
}

func highest(values []*float64) float64 {
	most := 0.0
	for _, v := range values {
		if v != nil {
			most = max(most, *v)
		}
	}
	return most
}
