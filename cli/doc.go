// Package cli is iopctl: what an operator types.
//
// cmd/iopctl calls Run with what the command needs of its surroundings; tests do the same. A command asks an edge's admin
// listener through edged/adminapi, or reads files through configs and storage; it prints a table, JSON or YAML to its own
// writer. It decides nothing, and only dev starts anything, by a function that its caller gives.
//
// Where next: cli.go (Run and the root command), globals.go (flags that all commands have), output.go and table.go
// (printing), then one file per noun.
package cli
