package service

import (
	"strings"
)

// logDefault is where launchd puts what noded says. It is not rotated by itself: newsyslog.conf(5).
const logDefault = "/usr/local/var/log/iop-noded.log"

// plist is a launchd job, the same for a daemon (of the machine) and an agent (of a user).
func (s Service) plist() string {
	log := s.Log
	if log == "" {
		log = logDefault
	}
	return strings.NewReplacer("@PROGRAM@", escaped(s.Program), "@CONFIG@", escaped(s.Config), "@LOG@", escaped(log), "@LABEL@", Label).Replace(plistText)
}

func escaped(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// ExitTimeOut is longer than running requests have to end (30 s). KeepAlive on a crash or a failure only; ThrottleInterval
// keeps a bad configuration from starting all the time, as launchd can't tell exit codes apart.
const plistText = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>@LABEL@</string>
	<key>ProgramArguments</key>
	<array>
		<string>@PROGRAM@</string>
		<string>--config</string>
		<string>@CONFIG@</string>
	</array>
	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<dict>
		<key>SuccessfulExit</key>
		<false/>
	</dict>
	<key>ThrottleInterval</key>
	<integer>10</integer>
	<key>ExitTimeOut</key>
	<integer>45</integer>
	<key>ProcessType</key>
	<string>Interactive</string>
	<key>Umask</key>
	<integer>63</integer>
	<key>SoftResourceLimits</key>
	<dict>
		<key>NumberOfFiles</key>
		<integer>16384</integer>
	</dict>
	<key>StandardOutPath</key>
	<string>@LOG@</string>
	<key>StandardErrorPath</key>
	<string>@LOG@</string>
</dict>
</plist>
`
