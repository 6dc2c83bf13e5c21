// Package bootstrap serves new machines, under /bootstrap/ of the openai listener: builds of noded with their checksums, an
// install script for sh and one for PowerShell, and the exchange by which a machine becomes a node.
//
//	GET  /bootstrap/SHA256SUMS          checksums of all builds that there are
//	GET  /bootstrap/noded-OS-ARCH[.exe] a build
//	GET  /bootstrap/install.sh          installs and joins; it carries the checksums, and the line that iopctl prints
//	GET  /bootstrap/install.ps1         carries its checksum: so what runs is what this edge has, whatever is in between
//	POST /bootstrap/join                {"join_token", "node_token_sha256"} → who the node is, and whom it dials
//
// A node makes its own token and shows only the hash: what is secret never comes back over the network, and a machine that
// lost the answer asks again with the same hash and hears the same. edged calls it; it knows neither the log nor the
// configuration, but a Host that does. It never logs a token, and never lists a directory.
//
// Where next: server.go (routes), shelf.go (the builds), script.go (the scripts), join.go (the exchange), limit.go.
package bootstrap
