// Package cli is the adapter whose backend is a command: an agent such as codex, claude or gemini, or any program that
// takes a prompt and prints an answer. It runs the command once per request, never through a shell.
//
// noded builds it. A run has a directory of its own that is removed afterwards, an environment that is a list of allowed
// names, a time limit and an output limit. It is over only when the command and everything that it has started are gone
// and its output is read to the end.
//
// What is guaranteed about processes: on Linux a keeper process per run (see Keep) is the reaper of everything below it,
// so that neither a daemon that forks twice nor one that leaves its session escapes; when noded dies, also by SIGKILL,
// the keeper ends them. On other unix systems that holds for the command's process group. On Windows a job object does
// the same. What another user's process or a service manager starts on the command's behalf is out of reach everywhere.
//
// Start reading at adapter.go (one request), then run.go, launch.go (the node's side of a process), keep_unix.go (the
// keeper), prompt.go (how messages become one prompt), parser.go and dialect_*.go (what is read of the output).
package cli
