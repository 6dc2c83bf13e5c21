package otlp

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Span is a span as a test reads it. Ids are in hexadecimal, attributes are texts.
type Span struct {
	Service, Instance string
	Name, Kind        string // Kind: server, client, internal
	Trace, ID, Parent string
	State             string // tracestate
	Start, End        time.Time
	Attrs             map[string]string
	Events            []Event
	Links             []string // trace ids
	Error             string   // of its status; "" = none
}

// Event is a moment of a span.
type Event struct {
	Name  string
	At    time.Time
	Attrs map[string]string
}

// Event returns the first event of a name.
func (s *Span) Event(name string) (Event, bool) {
	for _, e := range s.Events {
		if e.Name == name {
			return e, true
		}
	}
	return Event{}, false
}

// String is all that is in it, for a search.
func (s *Span) String() string { return fmt.Sprintf("%+v", *s) }

// Tree renders the spans of one trace, children below their parents in the order of their starts:
//
//	POST /v1/chat/completions
//	  admit
//	  dispatch
//
// what adds to each line.
func Tree(all []Span, trace string, what func(*Span) string) string {
	byParent := map[string][]Span{}
	known := map[string]bool{}
	for _, s := range all {
		if s.Trace == trace {
			known[s.ID] = true
		}
	}
	for _, s := range all {
		if s.Trace != trace {
			continue
		}
		parent := s.Parent
		if !known[parent] {
			parent = ""
		}
		byParent[parent] = append(byParent[parent], s)
	}
	var b strings.Builder
	var walk func(parent, indent string)
	walk = func(parent, indent string) {
		below := byParent[parent]
		slices.SortStableFunc(below, func(x, y Span) int { return x.Start.Compare(y.Start) })
		for i := range below {
			b.WriteString(indent + below[i].Name + what(&below[i]) + "\n")
			walk(below[i].ID, indent+"  ")
		}
	}
	walk("", "")
	return b.String()
}

func read(r *collectorpb.ExportTraceServiceRequest) (out []Span) {
	for _, of := range r.GetResourceSpans() {
		about := attrs(of.GetResource().GetAttributes())
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				x := span(s)
				x.Service, x.Instance = about["service.name"], about["service.instance.id"]
				out = append(out, x)
			}
		}
	}
	return out
}

func span(s *tracepb.Span) Span {
	x := Span{
		Name: s.GetName(), Kind: strings.ToLower(strings.TrimPrefix(s.GetKind().String(), "SPAN_KIND_")),
		Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
		State: s.GetTraceState(), Start: at(s.GetStartTimeUnixNano()), End: at(s.GetEndTimeUnixNano()), Attrs: attrs(s.GetAttributes()),
	}
	for _, e := range s.GetEvents() {
		x.Events = append(x.Events, Event{Name: e.GetName(), At: at(e.GetTimeUnixNano()), Attrs: attrs(e.GetAttributes())})
	}
	for _, l := range s.GetLinks() {
		x.Links = append(x.Links, hex.EncodeToString(l.GetTraceId()))
	}
	if s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
		x.Error = s.GetStatus().GetMessage()
	}
	return x
}

func at(nano uint64) time.Time { return time.Unix(0, int64(nano)) }

func attrs(list []*commonpb.KeyValue) map[string]string {
	m := make(map[string]string, len(list))
	for _, kv := range list {
		switch v := kv.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			m[kv.GetKey()] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			m[kv.GetKey()] = fmt.Sprint(v.IntValue)
		case *commonpb.AnyValue_BoolValue:
			m[kv.GetKey()] = fmt.Sprint(v.BoolValue)
		case *commonpb.AnyValue_DoubleValue:
			m[kv.GetKey()] = fmt.Sprint(v.DoubleValue)
		default:
			m[kv.GetKey()] = kv.GetValue().String()
		}
	}
	return m
}
