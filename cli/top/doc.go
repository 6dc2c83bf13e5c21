// Package top is the live view of a terminal that iopctl top shows: what providers, queue and leases are like now, and keys
// to sort, filter, explain, drain and cancel. The command (cli/top.go) gives it the feed of an edge and what it may do there.
//
// One goroutine reads the feed and hands the program a still of each frame (feed.go); the program owns all other state
// (model.go), changed by keys (keys.go) and drawn anew as a whole (screen.go); what reaches the terminal is the difference.
// Only the rows that are seen are drawn. Whatever comes from elsewhere goes through clean (text.go) first: ids and model
// names are chosen by clients, and must neither steer a terminal nor shift a column.
//
// It decides nothing and keeps nothing. Shapes are those of edged/adminapi.
package top
