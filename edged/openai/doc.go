// Package openai is the public HTTP: the OpenAI-compatible API that clients call.
//
// A request is read whole, looked through once, admitted by a Runner, and exchanged with a backend over a Backend; the
// answer is passed on as it arrives, with the model's name mapped back. Status and headers are decided before the first
// byte. The package knows nothing of the log, of nodes or of the configuration file: edged gives it a View and joins it
// with its siblings. It never takes or returns a slot itself; that is the Runner's.
//
// # Joining
//
//	srv := openai.New(openai.Options{Runner: runner{adm}, Backend: backend{links}, Ready: …, Metrics: m, Logger: log})
//	srv.Swap(view)               // at start and after each new configuration; atomic, running requests keep theirs
//	hs := srv.HTTP()             // an http.Server with the limits set; edged serves and shuts it down
//
// The types of the interfaces have the same shape as those of the siblings, so that the joints only convert:
//
//	func (r runner) Run(ctx context.Context, q openai.Request, c openai.Caller) error {
//		return r.Admission.Run(ctx, admission.Request(q), c)
//	}
//	func (b backend) Exchange(ctx context.Context, x *openai.Exchange, a openai.Answer) openai.End {
//		e := b.Links.Exchange(ctx, (*nodelink.Exchange)(x), a)
//		return openai.End{Dispatched: openai.Dispatched(e.Dispatched), Code: e.Code, Message: e.Message, Complete: e.Complete}
//	}
//
// The errors of a Runner tell what they are by a method Code() string (failure.go has the table). A backend's own
// refusal (busy, not run) comes as Head and Data and an End that says DispatchedNo: it is held back, the request goes
// back to its place, and only if nobody else can take it the client gets that answer.
//
// POST /v1/responses is the same exchange: what the backend gets and how its answer is told are other (responding.go, on
// package respond). A response that runs in the background is an exchange without a client (job.go); the Store keeps it,
// and durability, if any, is the Store's (store.go).
//
// Where next: server.go and routes.go (what is called), exchange.go (one request's way), scan.go and edit.go (the
// request's body), answer.go and rewrite.go (the answer), failure.go (every error).
package openai
