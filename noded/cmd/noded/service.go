package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"iop/configs"
	"iop/noded/service"
)

const serviceHelp = `Usage: noded service print|install [flags]
       noded service uninstall

print shows what the service manager of this system (or of --kind) is given to read; install puts it in place and starts noded, now
and at every boot; uninstall stops it and takes it away. install and uninstall want root, or an administrator; on a Mac without root
the service is the user's own.

`

// serviceWait bounds install and uninstall: a stop lets running requests end.
const serviceWait = 90 * time.Second

// manage prints, installs or removes the service.
func manage(args []string, stdout, stderr io.Writer, env configs.Env) int {
	var s service.Service
	kind := string(service.KindOf(runtime.GOOS))
	set := flag.NewFlagSet("noded service", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&s.Config, "config", "", "node file (or IOP_CONFIG)")
	set.StringVar(&s.Program, "program", "", "noded to run; empty: this one")
	set.StringVar(&s.User, "user", "iop", "systemd: who runs it; must exist")
	set.StringVar(&s.Env, "env-file", "", "systemd: file with NAME=VALUE lines, for ${NAME} in the node file")
	set.StringVar(&s.Log, "log-file", "", "launchd: where the log goes")
	set.StringVar(&kind, "kind", kind, "print: systemd, launchd or windows")
	set.Usage = func() {
		_, _ = io.WriteString(stderr, serviceHelp)
		set.PrintDefaults()
	}
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	if verb == "" || verb[0] == '-' {
		set.Usage()
		return exitUsage
	}
	switch err := set.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	case set.NArg() > 0:
		return refuse(stderr, fmt.Errorf("noded service: unexpected argument %q", set.Arg(0)))
	}
	if s.Config == "" {
		s.Config, _ = env("IOP_CONFIG")
	}
	said, err := serviceVerb(verb, &s, service.Kind(kind), env)
	var wrong *usageError
	switch {
	case errors.As(err, &wrong):
		return refuse(stderr, fmt.Errorf("noded service: %w", err))
	case err != nil:
		_, _ = fmt.Fprintln(stderr, "noded service: "+err.Error())
		return exitFailed
	}
	if _, err := io.WriteString(stdout, said); err != nil {
		return exitFailed
	}
	return exitOK
}

// usageError is a fault of the command line or of a file that it names.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func serviceVerb(verb string, s *service.Service, kind service.Kind, env configs.Env) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), serviceWait)
	defer cancel()
	switch verb {
	case "uninstall":
		said, err := service.Uninstall(ctx)
		return said + "\n", err
	case "print", "install":
	default:
		return "", &usageError{fmt.Errorf("%q is no verb: it is print, install or uninstall", verb)}
	}
	if err := complete(s, kind); err != nil {
		return "", &usageError{err}
	}
	if verb == "print" {
		text, err := s.Text(kind)
		if err != nil {
			return "", &usageError{err}
		}
		return text, nil
	}
	if _, err := s.Text(kind); err != nil {
		return "", &usageError{err}
	}
	// A file that noded would refuse makes no good service. Its variables may be set for the service alone.
	if _, _, err := configs.LoadNode(s.Config, forgiving(env, s.Env != "")); err != nil {
		return "", &usageError{err}
	}
	said, err := service.Install(ctx, *s)
	return said + "\n", err
}

// complete makes the paths absolute, as a service manager starts in a directory of its own.
func complete(s *service.Service, kind service.Kind) error {
	if s.Config == "" {
		return errors.New("no configuration: give --config FILE or set IOP_CONFIG")
	}
	if s.Program == "" {
		path, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		s.Program = path
	}
	if kind != service.KindOf(runtime.GOOS) {
		return nil // paths of another system
	}
	for _, p := range []*string{&s.Program, &s.Config, &s.Env, &s.Log} {
		if *p == "" {
			continue
		}
		path, err := filepath.Abs(*p)
		if err != nil {
			return fmt.Errorf("make the path %q absolute: %w", *p, err)
		}
		*p = path
	}
	return nil
}

// forgiving is env, and where the service has a file of variables, a stand-in for those that are not set here.
func forgiving(env configs.Env, file bool) configs.Env {
	return func(name string) (string, bool) {
		v, ok := env(name)
		if !ok && file {
			return "set-for-the-service", true
		}
		return v, ok
	}
}
