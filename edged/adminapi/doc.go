// Package adminapi is the JSON of the admin listener, and a client for it.
//
// edged/admin fills these shapes, iopctl and scripts read them, so they are a fixed point: keys are snake_case, lists
// are never null, moments are RFC 3339 strings, spans are whole milliseconds with the suffix _ms. A key may be added; one
// that is here is never renamed or removed. A null number means that there is no such bound: a provider without a
// capacity, a waiter without a deadline. The package imports nothing of ours and decides nothing.
//
// Where next: status.go, provider.go, node.go, lease.go, queue.go, model.go (the shapes), error.go, client.go.
package adminapi
