package top

import (
	"fmt"

	"iop/edged/adminapi"
)

func slots(n int) *int { return &n }

func ms(v float64) *float64 { return &v }

// busyFrame is an edge with everything in it, at noon.
func busyFrame() *adminapi.Frame {
	at := int64(1_796_040_000_000) // not noon here: the clocks of edge and viewer differ
	f := &adminapi.Frame{
		AtMS: at, Edge: "edge-1", Version: "v1.2.3", Role: "leader", Leader: "edge-1", Term: 3, AppliedIndex: 4711, Revision: 7,
		Actions: adminapi.ActionsAllowed, Queue: adminapi.Queue{Pending: 4, Max: 16, LongPending: 1},
		Providers: []adminapi.Provider{
			{
				ID: "gpu-1", Node: "rack-a", Type: "vllm", Connected: true, Status: "full", Health: "healthy", Enabled: true, Generation: 2,
				Capacity: slots(4), InFlight: 4, LongCapacity: slots(2), LongInFlight: 1, Queued: 4, LongQueued: 1,
			},
			{
				ID: "gpu-2", Node: "rack-a", Type: "vllm", Connected: true, Status: "draining", Health: "healthy", Enabled: true, Draining: true,
				Generation: 2, Capacity: slots(8), InFlight: 1,
			},
			{
				ID: "mac", Node: "desk", Type: "ollama", Connected: true, Status: "degraded", Health: "degraded", Enabled: true, Generation: 9,
				Capacity: slots(1), Queued: 1, Priority: 5, Cause: "GET /api/tags: 502",
			},
			{ID: "spare", Node: "shed", Type: "openai", Status: "unavailable", Health: "offline", Enabled: true, Capacity: slots(0)},
			{ID: "wide", Node: "rack-b", Type: "openai", Connected: true, Status: "available", Health: "healthy", Enabled: true, Generation: 1, InFlight: 12},
		},
		Nodes: []adminapi.Node{
			{ID: "desk", Connected: true}, {ID: "rack-a", Connected: true}, {ID: "rack-b", Connected: true}, {ID: "shed"},
		},
		Leases: []adminapi.LiveLease{
			{ID: 11, Request: "req-a1", Model: "ornith:35b", Provider: "gpu-1", Node: "rack-a", Class: "normal", State: "held", Edge: "edge-1", Generation: 2, GrantedAtMS: at - 5_000},
			{ID: 12, Request: "req-a2", Model: "ornith:35b", Provider: "gpu-1", Node: "rack-a", Class: "long", State: "fencing", Edge: "edge-1", Generation: 2, GrantedAtMS: at - 90_000},
		},
		Waiters: []adminapi.LiveWaiter{
			{Request: "req-b1", Model: "ornith:35b", Class: "normal", State: "waiting", Edge: "edge-1", Principal: "alice", Place: 31, EnqueuedAtMS: at - 65_000, DeadlineAtMS: at + 30_000, WaitsFor: "gpu-1 is full"},
			{Request: "req-b2", Model: "ornith-fast", Class: "long", State: "waiting", Edge: "edge-1", Principal: "bob", Place: 32, EnqueuedAtMS: at - 40_000, WaitsFor: "gpu-1 has no long slot free"},
			{Request: "req-b3", Model: "tiny", Class: "normal", State: "detached", Edge: "edge-2", Place: 35, EnqueuedAtMS: at - 3_000, DeadlineAtMS: at + 12_000, WaitsFor: "its client has to come back"},
			{Request: "req-b4", Model: "ornith:35b", Class: "normal", State: "waiting", Edge: "edge-1", Principal: "alice", Place: 40, EnqueuedAtMS: at - 1_000, DeadlineAtMS: at + 99_000, WaitsFor: "gpu-1 is full"},
		},
		Members: []adminapi.LiveMember{
			{ID: "edge-1", Suffrage: "voter", Leader: true, Reachable: true}, {ID: "edge-2", Suffrage: "voter", Reachable: true}, {ID: "edge-3", Suffrage: "voter"},
		},
	}
	for i := range 120 {
		s := adminapi.Sample{AtMS: at - int64(120-i)*1000, StepMS: 1000, Requests: 12, Errors: int64(i % 2), TokensIn: 100, TokensOut: 245}
		if i%10 != 3 {
			v := float64((i * 37) % 400)
			s.WaitMS = adminapi.Quantiles{P50: ms(v / 2), P90: ms(v), P99: ms(v * 2)}
		}
		f.Pulse = append(f.Pulse, s)
	}
	return f
}

// crowd is a frame with n waiters.
func crowd(n int) *adminapi.Frame {
	f := busyFrame()
	f.Queue.Pending, f.Queue.Max, f.Waiters = n, 2*n, nil
	for i := range n {
		f.Waiters = append(f.Waiters, adminapi.LiveWaiter{
			Request: fmt.Sprintf("req-%05d", i), Model: fmt.Sprintf("model-%d", i%7), Class: "normal", State: "waiting", Edge: "edge-1",
			Place: uint64(i + 1), EnqueuedAtMS: f.AtMS - int64(i), WaitsFor: "gpu-1 is full",
		})
	}
	return f
}
