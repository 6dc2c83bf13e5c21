package storage

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"
)

// etcdLinks are the connections to a member, used in turn: with two etcd did as well as with one, and better than with
// eight at a follower.
const etcdLinks = 2

// etcd is three members of etcd as processes on loopback, with their default settings: fsync is on.
type etcd struct{ members []*etcdMember }

// etcdMember is a client of one member. Of etcd's protocol it has what a lease needs, in protobuf written by hand:
// etcd's own client would be a dependency of the whole module.
type etcdMember struct {
	address string
	links   []*grpc.ClientConn
	next    atomic.Uint64
	log     string
	ended   chan struct{}
}

func startEtcd(b *testing.B, program string) *etcd {
	b.Helper()
	addresses := freeAddresses(b, 6)
	var peers []string
	for i := range 3 {
		peers = append(peers, fmt.Sprintf("m%d=http://%s", i, addresses[i]))
	}
	e := &etcd{}
	for i := range 3 {
		e.members = append(e.members, startMember(b, program, fmt.Sprintf("m%d", i), addresses[i], addresses[i+3], strings.Join(peers, ",")))
	}
	for _, m := range e.members {
		m.await(b)
	}
	return e
}

func startMember(b *testing.B, program, name, peer, client, cluster string) *etcdMember {
	b.Helper()
	dir := b.TempDir()
	m := &etcdMember{address: client, log: filepath.Join(dir, "log"), ended: make(chan struct{})}
	log, err := os.Create(m.log)
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(program, "--name", name, "--data-dir", filepath.Join(dir, "data"), "--logger", "zap", "--log-level", "error",
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer,
		"--listen-client-urls", "http://"+client, "--advertise-client-urls", "http://"+client,
		"--initial-cluster", cluster, "--initial-cluster-state", "new")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ETCD_") })
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // killed, as a rule
		close(m.ended)
	}()
	b.Cleanup(func() {
		_ = cmd.Process.Kill() // its files go as well
		<-m.ended
		_ = log.Close()
	})
	for range etcdLinks {
		link, err := grpc.NewClient("passthrough:///"+client, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.ForceCodec(plainCodec{})))
		if err != nil {
			b.Fatal(err)
		}
		m.links = append(m.links, link)
		b.Cleanup(func() { _ = link.Close() })
	}
	return m
}

// await waits until the member knows a leader.
func (m *etcdMember) await(b *testing.B) {
	b.Helper()
	for end := time.Now().Add(long); ; time.Sleep(20 * time.Millisecond) {
		_, leader, err := m.status()
		if err == nil && leader != 0 {
			return
		}
		select {
		case <-m.ended:
		default:
			if time.Now().Before(end) {
				continue
			}
		}
		log, _ := os.ReadFile(m.log)
		b.Fatalf("etcd at %s is not ready: %v\n%s", m.address, err, log)
	}
}

func (e *etcd) find(b *testing.B, at string) (lessor, any) {
	b.Helper()
	for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for _, m := range e.members {
			self, leader, err := m.status()
			if err == nil && leader != 0 && (self == leader) == (at == "leader") {
				return m, leader
			}
		}
	}
	b.Fatalf("etcd has no %s", at)
	return nil, nil
}

// status returns the ids of the member and of the one that it takes for the leader; 0 = none.
func (m *etcdMember) status() (self, leader uint64, err error) {
	b, err := m.invoke("Maintenance/Status", nil)
	if err != nil {
		return 0, 0, err
	}
	header, err := field(b, 1)
	if err != nil {
		return 0, 0, err
	}
	if self, err = number(header, 2); err != nil {
		return 0, 0, err
	}
	leader, err = number(b, 4)
	return self, leader, err
}

// grant takes a lease that lives longer than the benchmark; etcd chooses its id.
func (m *etcdMember) grant() (uint64, error) {
	b, err := m.invoke("Lease/LeaseGrant", varint(1, 600))
	if err != nil {
		return 0, err
	}
	lease, err := number(b, 2)
	if err == nil && lease == 0 {
		err = fmt.Errorf("etcd granted no lease: %x", b)
	}
	return lease, err
}

func (m *etcdMember) release(lease uint64, done chan<- error) {
	go func() {
		_, err := m.invoke("Lease/LeaseRevoke", varint(1, lease))
		done <- err
	}()
}

func (m *etcdMember) invoke(method string, in []byte) (out []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	link := m.links[m.next.Add(1)%uint64(len(m.links))]
	if err := link.Invoke(ctx, "/etcdserverpb."+method, in, &out); err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	return out, nil
}

// plainCodec leaves messages as they are.
type plainCodec struct{}

func (plainCodec) Name() string { return "proto" }

func (plainCodec) Marshal(v any) ([]byte, error) { return v.([]byte), nil }

func (plainCodec) Unmarshal(b []byte, v any) error {
	*v.(*[]byte) = slices.Clone(b)
	return nil
}

func varint(n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), v)
}

// number returns a field that is a varint, 0 if there is none.
func number(b []byte, want protowire.Number) (uint64, error) {
	v, err := value(b, want, protowire.VarintType)
	if err != nil || v == nil {
		return 0, err
	}
	x, _ := protowire.ConsumeVarint(v)
	return x, nil
}

// field returns a field that is a message, nil if there is none.
func field(b []byte, want protowire.Number) ([]byte, error) {
	v, err := value(b, want, protowire.BytesType)
	if err != nil || v == nil {
		return nil, err
	}
	x, _ := protowire.ConsumeBytes(v)
	return x, nil
}

// value returns the bytes of a field's value, whole and valid, nil if there is none.
func value(b []byte, want protowire.Number, kind protowire.Type) ([]byte, error) {
	for len(b) > 0 {
		got, k, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(got, k, b); n < 0 {
			return nil, protowire.ParseError(n)
		}
		if got == want && k == kind {
			return b[:n], nil
		}
		b = b[n:]
	}
	return nil, nil
}

// freeAddresses are on loopback, all different; whoever takes one in between breaks the start.
func freeAddresses(b *testing.B, n int) (out []string) {
	b.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		out = append(out, l.Addr().String())
	}
	return out
}
