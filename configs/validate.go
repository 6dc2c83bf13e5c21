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
	checkTags(c, r)
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
func (e *Edge) check(r *report)    { checkTags(e, r); e.Cluster.check(r) }
func (n *Node) check(r *report)    { checkTags(n, r) }
func (c *Cluster) check(r *report) {}
func checkTags(v any, r *report)   {}
