package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"

	"iop/cli"
	"iop/configs"
	"iop/edged"
	"iop/noded"
)

// dev runs an edge and a node in this process until ctx ends.
func dev(ctx context.Context, o cli.DevOptions) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.LogLevel)); err != nil {
		return fault("it is debug, info, warn or error", "unknown log level %q", o.LogLevel)
	}
	log := slog.New(slog.NewTextHandler(o.Stderr, &slog.HandlerOptions{Level: level}))
	if err := checkFree("port", o.Port); err != nil {
		return err
	}
	if err := checkFree("admin-port", o.AdminPort); err != nil {
		return err
	}
	h, err := openHome(o.DataDir)
	if err != nil {
		return err
	}
	token, err := h.token()
	if err != nil {
		return err
	}
	var backends []found
	if o.Detect {
		backends = detect(ctx, places(o.Port, o.AdminPort))
	}
	others, err := named(ctx, o.Backends)
	if err != nil {
		return err
	}
	backends = append(backends, others...)
	file, err := h.loadEdge(h.edgeText(o.Port, o.AdminPort, configs.HashToken(token), backends), os.LookupEnv)
	if err != nil {
		return err
	}
	g := &gateway{home: h, token: token, log: log, stdout: o.Stdout, backends: backends}
	return g.run(ctx, file)
}

// checkFree finds out early, and in words, that a port is taken.
func checkFree(flag string, port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		another := "--" + flag
		if called != calledPlain { // by make run
			another = "make run DEV=--" + flag + "=PORT"
		}
		return fault(fmt.Sprintf("stop what listens there, or choose another port with %s (0 = a free one)", another),
			"port %d can't be used: %w", port, err)
	}
	return l.Close()
}

// gateway is an edge and a node in one process.
type gateway struct {
	home     home
	token    string
	log      *slog.Logger
	stdout   io.Writer
	backends []found
}

// run starts the edge, then the node, and stops them the other way round of what depends on what: the edge first, so that
// running requests end while their backends still serve.
func (g *gateway) run(ctx context.Context, file *configs.Edge) error {
	edge, err := edged.New(edged.Options{
		Config: file, Logger: g.log.With("part", "edge"), Version: version(), ConfigPath: g.home.edgeFile(), Env: os.LookupEnv,
	})
	if err != nil {
		return fmt.Errorf("start the edge: %w", err)
	}
	edgeCtx, stopEdge := context.WithCancel(ctx)
	defer stopEdge()
	edgeEnd := start(edgeCtx, edge.Run)
	select {
	case err := <-edgeEnd:
		return ended("edge", err)
	case <-edge.Ready():
	}
	nodeCtx, stopNode := context.WithCancel(context.WithoutCancel(ctx))
	defer stopNode()
	node, err := g.node(edge.Addrs().Node)
	if err != nil {
		stopEdge()
		return errors.Join(err, <-edgeEnd)
	}
	nodeEnd := start(nodeCtx, node.Run)
	err = g.watch(edge.Addrs(), node.Ready(), edgeEnd, nodeEnd, stopEdge)
	stopNode()
	return errors.Join(err, ended("node", <-nodeEnd))
}

func (g *gateway) node(edge string) (*noded.Daemon, error) {
	file, err := g.home.loadNode(g.home.nodeText(edge, g.token), os.LookupEnv)
	if err != nil {
		return nil, err
	}
	node, err := noded.New(noded.Options{Config: file, Logger: g.log.With("part", "node"), Version: version(), Keeper: noded.Keeper()})
	if err != nil {
		return nil, fmt.Errorf("start the node: %w", err)
	}
	return node, nil
}

// watch tells when all is ready and returns when the edge has ended. A node that ends by itself takes the edge along; its
// end is put back for the caller.
func (g *gateway) watch(at edged.Addrs, nodeReady <-chan struct{}, edgeEnd, nodeEnd chan error, stopEdge func()) error {
	for {
		select {
		case <-nodeReady:
			nodeReady = nil
			g.welcome(at.OpenAI, at.Admin)
		case err := <-nodeEnd:
			nodeEnd <- err
			stopEdge()
			return ended("edge", <-edgeEnd)
		case err := <-edgeEnd:
			return ended("edge", err)
		}
	}
}

// start runs a daemon beside us. The channel gives its end once.
func start(ctx context.Context, run func(context.Context) error) chan error {
	end := make(chan error, 1)
	go func() { end <- run(ctx) }()
	return end
}

func ended(part string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the %s ended: %w", part, err)
}
