// Package edged is one edge: it joins the rooms below it and does nothing of its own between them.
//
//	openai     public HTTP                    → admission, nodelink (through join.go)
//	admission  a request's way to a slot      → storage
//	nodelink   links and runs                 → storage
//	admin      what operators read            → storage
//	storage    the log, the machine           → fsm
//
// cmd/edged calls New and Run. What is decided, fsm decides. Where next: daemon.go (the life of the process), join.go
// (how the rooms meet), view.go (the running configuration as the rooms see it), boot.go (the file that is offered).
package edged
