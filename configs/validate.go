package configs

// Validate checks an edge configuration made in code, by the rules of a load. The error is a *Problems.
func (e *Edge) Validate() error {
	r := newReport()
	e.check(r)
	_, err := r.result("")
	return err
}

// Validate checks a cluster part made in code, by the rules of a load. The error is a *Problems.
func (c *Cluster) Validate() error {
	r := newReport()
	checkTags(r, c)
	c.check(r)
	_, err := r.result("")
	return err
}

// Validate checks a node configuration made in code, by the rules of a load. The error is a *Problems.
func (n *Node) Validate() error {
	r := newReport()
	n.check(r)
	_, err := r.result("")
	return err
}

func (e *Edge) check(r *report) {
	checkTags(r, e)
	e.Edge.check(r)
	e.Cluster.check(r)
	if len(e.OpenAI.PrincipalTokens) == 0 && e.Edge.Listen.OpenAI != "" && !onLoopback(e.Edge.Listen.OpenAI) {
		r.warn("openai.principal_tokens", "empty: everybody who reaches "+e.Edge.Listen.OpenAI+" may call; add tokens, or listen on 127.0.0.1")
	}
}
