package e2e

import "testing"

// TestDashboard looks at the page in a real Chromium, one story after another.
func TestDashboard(t *testing.T) {
	c := newChromium(t)
	for _, story := range []struct {
		name string
		run  func(*testing.T, *chromium)
	}{
		{"shows what is and changes it", dashboardWorks},
		{"without a token of the edge", dashboardOpen},
		{"with the view token", dashboardViewToken},
		{"comes back after the edge was killed", dashboardReconnects},
		{"begins anew after a gap", dashboardGap},
		{"loaded anew in the middle of a question", dashboardAnew},
		{"hostile names", dashboardHostile},
		{"thousands of rows", dashboardScale},
		{"keyboard only", dashboardKeyboard},
		{"accessible by rule", dashboardAxe},
		{"every width", dashboardWidths},
	} {
		t.Run(story.name, func(t *testing.T) { story.run(t, c) })
	}
}
