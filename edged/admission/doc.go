// Package admission leads one request through its way: admit, wait, dispatch, release.
//
// openai calls Run for each inference request (edged joins them). Admission proposes the commands of that request to
// the session and wakes its goroutine when the machine has decided; it keeps a table of the local waiters and decides
// nothing itself. A lease that this edge was granted is released exactly once, whatever becomes of the client: the
// release is proposed without the client's context, repeated while the log is overloaded, and nobody waits for it.
// It never talks to a node: that is the caller's Dispatch.
//
// # Joining
//
// Receive and Effects come from the store's one dispatcher goroutine, in log order; of one entry the outcomes come
// first and then the effects. Neither blocks.
//
//	adm := admission.New(admission.Options{Metrics: m, Translate: translate})
//	session, err := store.OpenSession(ctx, edge, func(e []fsm.Effect) { links.Effects(e); adm.Effects(e) })
//	adm.Attach(session)
//
// When the session ends while the edge lives, commands wait for the next one: adm.Attach(next) gives the waiters back
// their places, by their names and in their order, and proposes what waited; adm.Abandon() says that there is no next one.
// Runs go on meanwhile; a lease of an ended session is released all the same, and may be found given back already.
//
// translate turns an error of the store into ErrOverloaded, ErrNoLeader, ErrSessionEnded or ErrFailed (wrapped, so that
// the cause stays readable). At a graceful stop: adm.Stop(), then the HTTP server's Shutdown, then adm.Drain(ctx) so that the
// last releases are in the log before the session ends, then adm.Close().
//
// Where next: admission.go (Run), ticket.go (the states of one request), receive.go and effects.go (what the log says),
// attach.go and probe.go (from one session to the next), drain.go (the end).
package admission
