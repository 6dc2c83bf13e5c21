package configs

import "time"

// Edge is the edge file: the replica's own part, then the part that the whole cluster shares.
type Edge struct {
	Edge    Self `json:"edge" doc:"This replica's own part. Here alone ${NAME} is replaced by the environment."`
	Cluster      // inline: its keys stand at the top level of the file
}

// Self is what concerns one replica only. A change of any of it needs a restart.
type Self struct {
	ID               string       `json:"id" required:"true" doc:"Name of this replica, unique in the cluster."`
	DataDir          string       `json:"data_dir" required:"true" doc:"Directory of the log and the snapshots; one process at a time."`
	Listen           Listen       `json:"listen" doc:"Addresses to listen on, as host:port. Port 0 takes a free one. Empty: not served, where that is possible."`
	Advertise        Advertise    `json:"advertise" doc:"Addresses that others are told, where they differ from those listened on."`
	TLS              TLS          `json:"tls" doc:"Files in PEM form, for the node, cluster, (if not on loopback) admin and (if asked for) openai listeners. Empty: plain text."`
	Cluster          ClusterSelf  `json:"cluster" doc:"The replicas of this cluster."`
	Bootstrap        Bootstrap    `json:"bootstrap" doc:"Installers served to new machines."`
	ControlPlane     ControlPlane `json:"control_plane" doc:"An outer control plane that this replica reports to."`
	Admin            Admin        `json:"admin" doc:"Access to the admin listener."`
	Link             Link         `json:"link" doc:"The links between this replica and its nodes."`
	History          History      `json:"history" doc:"How much of the log stays to look back at (iopctl leases inspect, debug log), beside what a restart needs."`
	CORS             CORS         `json:"cors" doc:"Which pages of other origins may call the openai listener from a browser. Off by default."`
	Traces           Traces       `json:"traces" doc:"OpenTelemetry traces of requests. Off by default."`
	MaxBodyBytes     int64        `json:"max_body_bytes" min:"1024" max:"1073741824" doc:"Largest body of a client's request, in bytes; a larger one is answered 413."`
	QueueKeepaliveMS Millis       `json:"queue_keepalive_ms" min:"0" max:"600000" doc:"A streaming request that waits longer than this gets its headers and comment lines as a sign of life. 0: never."`
	StopTimeoutMS    Millis       `json:"stop_timeout_ms" min:"0" max:"3600000" doc:"How long running requests may go on after a graceful stop began."`
}

// Listen names the listeners of an edge.
type Listen struct {
	OpenAI  string `json:"openai" required:"true" doc:"For clients: the OpenAI-compatible API."`
	Node    string `json:"node" required:"true" doc:"For nodes, which dial it. Beyond loopback it needs edge.tls, or edge.link.plaintext."`
	Admin   string `json:"admin" required:"true" doc:"For operators: status, refresh, metrics. Beyond loopback it needs edge.admin.token and edge.tls."`
	Cluster string `json:"cluster" doc:"For the other replicas. Without edge.cluster.peers it is only opened on loopback, with TLS or with edge.cluster.plaintext, so that the edge can grow."`
	A2A     string `json:"a2a" doc:"For agents that speak A2A. Empty: not served."`
}

// Advertise names the addresses that others are told.
type Advertise struct {
	Node    string `json:"node" doc:"Address that nodes dial. Empty: as listened on."`
	Cluster string `json:"cluster" doc:"Address that the other replicas dial. Empty: as listened on."`
}

// TLS names PEM files; they are read again at each handshake.
type TLS struct {
	Cert     string `json:"cert" doc:"Certificate chain file."`
	Key      string `json:"key" doc:"Private key file."`
	OpenAI   bool   `json:"openai" doc:"Serve the openai listener with TLS too (TLS 1.2 or newer, HTTP/2 and 1.1), without client certificates. false: plain text, for a proxy in front of it."`
	ClientCA string `json:"client_ca" doc:"Authorities whose client certificates nodes must show, beside their tokens; empty: none is asked for."`
}

// CORS is what browsers are told about pages of other origins.
type CORS struct {
	Origins  []string `json:"origins" doc:"Origins whose pages may call, as scheme://host[:port], or * for all. Empty: none."`
	Headers  []string `json:"headers" doc:"Request headers that they may send beside those of the known SDKs."`
	MaxAgeMS Millis   `json:"max_age_ms" min:"0" max:"86400000" doc:"How long a browser may remember the answer. 0: as long as it likes."`
}

// ClusterSelf is this replica's view of its cluster.
type ClusterSelf struct {
	Peers        []Peer `json:"peers" doc:"Every replica, this one included, the same list on all. Empty: one replica."`
	SessionTTLMS Millis `json:"session_ttl_ms" min:"500" max:"600000" doc:"A replica that is silent for longer counts as lost."`
	CA           string `json:"ca" doc:"Authority of the replicas' certificates, a PEM file; each must name its edge.id (iopctl certs edge). Empty: edge.tls.client_ca."`
	Plaintext    bool   `json:"plaintext" doc:"Allow the cluster listener without TLS beyond loopback."`
}

// Peer is a replica.
type Peer struct {
	ID      string `json:"id" required:"true" doc:"The replica's edge.id."`
	Address string `json:"address" required:"true" doc:"Its cluster address, host:port."`
}

// Bootstrap serves node installers.
type Bootstrap struct {
	ArtifactDir string `json:"artifact_dir" doc:"Directory of noded builds (make artifacts), served with an install script under /bootstrap/ of the openai listener. Empty: none are served; machines that have noded can join all the same."`
	PublicURL   string `json:"public_url" doc:"Where new machines reach the openai listener, http(s)://host[:port]. Empty: made of the host of edge.advertise.node (or this machine's name) and the listener's port."`
	Plaintext   bool   `json:"plaintext" doc:"Let machines beyond loopback join over plain HTTP: who listens in on the network can take a join token before it is used."`
}

// ControlPlane is an outer control plane.
type ControlPlane struct {
	Address string `json:"address" doc:"host:port. Empty: none."`
	Token   Secret `json:"token" doc:"Token for it; write ${NAME} and set the variable."`
}

// Admin guards the admin listener.
type Admin struct {
	Token     Secret `json:"token" doc:"Token that iopctl must show; write ${NAME} and set the variable. Needed if the admin listener is not on loopback, and to change anything from a browser."`
	ViewToken Secret `json:"view_token" doc:"Token that may read everything on the admin listener and change nothing, for dashboards and scrapers; write ${NAME} and set the variable. It needs edge.admin.token beside it, and is another one. Empty: there is none."`
}

// Link is about the links with nodes; heartbeats go both ways.
type Link struct {
	HeartbeatMS Millis `json:"heartbeat_ms" min:"50" max:"60000" doc:"Interval of heartbeats."`
	Missed      int    `json:"missed" min:"1" max:"100" doc:"A link is lost after this many missed heartbeats."`
	Plaintext   bool   `json:"plaintext" doc:"Allow the node listener without TLS beyond loopback: node tokens and prompts travel unencrypted."`
}

// History bounds the log's tail. What comes first ends it; some thousand entries stay anyway.
type History struct {
	MaxBytes int64  `json:"max_bytes" min:"1048576" max:"1099511627776" doc:"Size of the tail; the file needs some more."`
	MaxAgeMS Millis `json:"max_age_ms" min:"60000" max:"31536000000" doc:"Age of the oldest entry of the tail."`
}

// Millis is a span in milliseconds.
type Millis int64

// Duration gives the span as a time.Duration.
func (m Millis) Duration() time.Duration { return time.Duration(m) * time.Millisecond }

// NewEdge gives the defaults of every key of the edge file. Keys that have none (edge.id, edge.data_dir) are empty.
func NewEdge() *Edge {
	return &Edge{
		Edge: Self{
			Listen: Listen{OpenAI: ":8080", Node: "127.0.0.1:7443", Admin: "127.0.0.1:9080", Cluster: ":7400"},
			Cluster: ClusterSelf{
				Peers:        []Peer{},
				SessionTTLMS: 3000,
			},
			Link:             Link{HeartbeatMS: 2000, Missed: 3},
			CORS:             CORS{Origins: []string{}, Headers: []string{}, MaxAgeMS: 600_000},
			History:          History{MaxBytes: 256 << 20, MaxAgeMS: 86_400_000},
			Traces:           newTraces(),
			MaxBodyBytes:     32 << 20,
			QueueKeepaliveMS: 15_000,
			StopTimeoutMS:    30_000,
		},
		Cluster: *NewCluster(),
	}
}
