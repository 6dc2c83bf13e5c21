package configs

import (
	"maps"
	"slices"
	"strings"
)

const nodeTokenPath = "node.token"

func (n *Node) check(r *report) {
	checkTags(r, n)
	s := &n.Node
	checkName(r, "node.id", s.ID)
	edges := newUniques(r)
	for i, address := range s.Edges {
		at := indexPath("node.edges", i)
		if address == "" && !r.failed(at) {
			r.problem(at, "is empty", "write host:port of the edge's node listener")
		}
		checkDial(r, at, address)
		edges.add(at, address, "this address", "name each edge once")
	}
	if s.Token != "" && r.set["node.token"] && !r.expanded["node.token"] {
		r.warn(nodeTokenPath, "the token itself stands in a file that others may read; chmod 600 it, or write ${IOP_NODE_TOKEN} and set the variable")
	}
	s.checkPlain(r)
	s.TLS.check(r)
	s.Traces.check(r, "node.traces")
	n.checkCommands(r)
	for _, name := range slices.Sorted(maps.Keys(n.Env)) {
		path := keyPath("env", name)
		switch {
		case r.failed(path):
		case !envName.MatchString(name):
			r.problem(path, "is not the name of an environment variable", "use letters, digits and _, as in api_key_env of the adapter")
		case n.Env[name] == "":
			r.warn(path, "is empty: adapters that name it send no key")
		}
	}
}

// checkCommands takes names and absolute paths. A relative path would mean whatever directory noded is started in.
func (n *Node) checkCommands(r *report) {
	const list = "commands"
	if r.lines[list] > 0 && !r.set[list] && !r.failed(list) {
		r.problem(list, "has no value: that might mean any program, or none", "list the programs, write [] for none, or remove the key for any")
	}
	programs := newUniques(r)
	for i, program := range n.Commands {
		at := indexPath(list, i)
		switch {
		case r.failed(at):
			continue
		case strings.TrimSpace(program) == "" || program == "." || program == "..":
			r.problem(at, "names no program", "write a program's name or its absolute path; for none at all: commands: []")
		case strings.ContainsAny(program, `/\`) && !absolute.MatchString(program):
			r.problem(at, "is a relative path", "write the program's name, to be looked up in PATH, or its absolute path")
		}
		programs.add(at, program, "this program", "name each program once")
	}
}

// checkPlain refuses to send the token to another machine without TLS, unless that is accepted.
func (s *NodeSelf) checkPlain(r *report) {
	if s.TLS.Enabled || s.Plaintext || r.failed("node.tls") {
		return
	}
	for i, address := range s.Edges {
		if at := indexPath("node.edges", i); address != "" && !onLoopback(address) && !r.failed(at) {
			r.problem(at, address+" is another machine, and node.tls.enabled is false: the token and all prompts would travel unencrypted",
				"set node.tls.enabled: true as the edge has it, or accept plain text with node.plaintext: true")
		}
	}
}

func (t *NodeTLS) check(r *report) {
	if !t.Enabled {
		for _, f := range []struct{ key, value string }{{"ca", t.CA}, {"cert", t.Cert}, {"key", t.Key}, {"server_name", t.ServerName}} {
			if f.value != "" {
				r.problem("node.tls."+f.key, "is given while node.tls.enabled is false", "set node.tls.enabled: true, or remove it")
			}
		}
		return
	}
	switch {
	case t.Cert != "" && t.Key == "":
		r.problem("node.tls.key", "is missing, while node.tls.cert is given", "give the private key's file, or neither")
	case t.Cert == "" && t.Key != "":
		r.problem("node.tls.cert", "is missing, while node.tls.key is given", "give the certificate's file, or neither")
	}
}
