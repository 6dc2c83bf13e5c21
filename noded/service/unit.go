package service

import "strings"

// unit is a systemd unit. It is as closed as a node can be that may start agents: these need a network and programs that
// make code at run time, and no more.
func (s Service) unit() string {
	user := s.User
	if user == "" {
		user = "iop"
	}
	env := ""
	if s.Env != "" {
		env = "EnvironmentFile=-" + s.Env + "\n"
	}
	return strings.NewReplacer(
		"@PROGRAM@", quoted(s.Program), "@CONFIG@", quoted(s.Config), "@USER@", user, "@ENV@\n", env,
	).Replace(unitText)
}

// quoted keeps a path with blanks one word; check has refused what quotes could not hold.
func quoted(path string) string {
	path = strings.ReplaceAll(path, `\`, `\\`)
	path = strings.ReplaceAll(path, `$`, `$$`)
	if strings.ContainsAny(path, " \t'\\") {
		return `"` + path + `"`
	}
	return path
}

const unitText = `# noded as a systemd service. "noded service print" writes it with other paths; "noded service install" puts it in place.
[Unit]
Description=iop node: reaches the model servers of this machine for the gateway
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
User=@USER@
@ENV@
ExecStart=@PROGRAM@ --config @CONFIG@
# 2 is a bad configuration: starting again does not cure it.
Restart=on-failure
RestartSec=2
RestartPreventExitStatus=2
# Running requests have 30 s to end; what is left of agents then is killed.
KillSignal=SIGTERM
KillMode=mixed
TimeoutStopSec=45
LimitNOFILE=65536

StateDirectory=iop-noded
WorkingDirectory=%S/iop-noded
UMask=0077
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
PrivateTmp=yes
PrivateDevices=yes
ProtectSystem=strict
# Agents find their login below home. One that must write there: "systemctl edit", ReadWritePaths=.
ProtectHome=read-only
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
# Agents that build a sandbox of their own (bubblewrap) want this off.
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
RemoveIPC=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
`
