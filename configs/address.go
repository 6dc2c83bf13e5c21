package configs

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// checkListen reports an address that nobody can listen on. Empty is left to the caller.
func checkListen(r *report, path, address string) { checkAddress(r, path, address, false) }

// checkDial reports an address that nobody can dial. Empty is left to the caller.
func checkDial(r *report, path, address string) { checkAddress(r, path, address, true) }

func checkAddress(r *report, path, address string, dial bool) {
	if address == "" || r.failed(path) {
		return
	}
	cure := "write host:port, for example 127.0.0.1:7443"
	if strings.Contains(address, "://") {
		r.problem(path, "this is a URL, not an address", cure)
		return
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		r.problem(path, "this is not host:port", cure+", and an IPv6 host in brackets")
		return
	}
	n, err := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil:
		r.problem(path, "the port is not a number from 0 to 65535", cure)
	case dial && n == 0:
		r.problem(path, "port 0 cannot be dialled", "give the port that the other side listens on")
	case dial && host == "":
		r.problem(path, "the host is missing", cure)
	case strings.ContainsAny(host, " \t/@?#"):
		r.problem(path, "the host holds a character that no host has", cure)
	}
}

// onLoopback tells whether an address to listen on is reached from this machine only.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// sameListener tells whether two addresses would collide.
func sameListener(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	return hostA == hostB || anyHost(hostA) || anyHost(hostB)
}

func anyHost(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }
