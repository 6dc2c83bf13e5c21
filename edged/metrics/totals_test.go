package metrics_test

import (
	"reflect"
	"testing"
	"time"

	"iop/edged/metrics"
)

// Fault: a refresh that drops a model lets the sums fall, and the pulse takes that for a new beginning.
func TestTotalsKeepWhatDroppedNamesCounted(t *testing.T) {
	m := metrics.New()
	m.SetNames([]string{"a", "b"}, []string{"p"})
	for _, model := range []string{"a", "b"} {
		m.Route(model, "p").Ended(metrics.OutcomeBackendError)
		m.Model(model).Wait(time.Millisecond, "")
		m.Usage(metrics.UsageKey{Model: model, Provider: "p"}).Add(3, 4)
	}
	before := m.Totals()
	if before.Requests != 2 || before.Errors != 2 || before.TokensIn != 6 || before.TokensOut != 8 {
		t.Fatalf("%+v", before)
	}
	m.SetNames([]string{"a"}, []string{"p"})
	if after := m.Totals(); !reflect.DeepEqual(before, after) {
		t.Errorf("before %+v\nafter  %+v", before, after)
	}
}
