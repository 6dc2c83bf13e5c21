package top

// helpLines are the keys. They fit into the body of 80x24.
func helpLines() []string {
	return []string{
		"Tab, 1 2 3     next list; providers, queue, leases",
		"Up Down, j k   one row;  PgUp PgDn: a page;  g G: first, last",
		"Enter          why it waits, its story, what the backend says",
		"s S            order by the next or previous column;  r: reverse",
		"/              filter: rows that have all the words;  Esc: all rows",
		"d              drain the provider, or take that back (asks first)",
		"D              the same with its whole node",
		"x              take the waiting request out of the queue (asks first)",
		"p, Space       pause: the picture stands still, the feed goes on",
		"?  q           this help;  leave (also Ctrl-C)",
		"",
		"IN FLIGHT: slots in use of all. OF IT LONG: slots that long requests",
		"use of those they may. QUEUED: waiters that could use the provider;",
		"one counts at several. Waits: of this edge's requests, per second.",
	}
}
