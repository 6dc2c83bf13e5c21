package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/eventlog"
	"golang.org/x/sys/windows/svc/mgr"
)

// Install makes the service and starts it, now and at every boot. It returns what it did.
func Install(_ context.Context, s Service) (string, error) {
	if err := s.check(Windows); err != nil {
		return "", err
	}
	m, err := mgr.Connect()
	if err != nil {
		return "", fmt.Errorf("reach the service manager (as an administrator?): %w", err)
	}
	defer func() { _ = m.Disconnect() }()
	v, err := m.CreateService(WindowsName, s.Program, mgr.Config{
		DisplayName: "iop node", Description: "Reaches the model servers of this machine for the iop gateway.",
		StartType: mgr.StartAutomatic, DelayedAutoStart: true,
	}, "--config", s.Config)
	if err != nil {
		return "", fmt.Errorf("make the service %s: %w", WindowsName, err)
	}
	defer func() { _ = v.Close() }()
	again := []mgr.RecoveryAction{{Type: mgr.ServiceRestart, Delay: 2 * time.Second}, {Type: mgr.ServiceRestart, Delay: 30 * time.Second}}
	if err := v.SetRecoveryActions(again, 24*60*60); err != nil {
		return "", fmt.Errorf("have the service started again after a failure: %w", err)
	}
	if err := eventlog.InstallAsEventCreate(WindowsName, eventlog.Error|eventlog.Warning|eventlog.Info); err != nil {
		return "", fmt.Errorf("register the event source: %w", err)
	}
	if err := v.Start(); err != nil {
		return "", fmt.Errorf("start the service: %w", err)
	}
	return "service " + WindowsName + " is installed and started; its log: Event Viewer, Windows Logs, Application, source " + WindowsName, nil
}

// stopWait is how long a stop may take: running requests have 30 s to end.
const stopWait = 45 * time.Second

// Uninstall stops the service and removes it. The node file stays.
func Uninstall(ctx context.Context) (string, error) {
	m, err := mgr.Connect()
	if err != nil {
		return "", fmt.Errorf("reach the service manager (as an administrator?): %w", err)
	}
	defer func() { _ = m.Disconnect() }()
	v, err := m.OpenService(WindowsName)
	if err != nil {
		return "", fmt.Errorf("the service %s is not installed: %w", WindowsName, err)
	}
	defer func() { _ = v.Close() }()
	if err := stop(ctx, v); err != nil {
		return "", err
	}
	if err := v.Delete(); err != nil {
		return "", fmt.Errorf("remove the service: %w", err)
	}
	if err := eventlog.Remove(WindowsName); err != nil {
		return "", fmt.Errorf("remove the event source: %w", err)
	}
	return "service " + WindowsName + " is stopped and removed", nil
}

// stop waits until the service has stopped.
func stop(ctx context.Context, v *mgr.Service) error {
	ctx, cancel := context.WithTimeout(ctx, stopWait)
	defer cancel()
	status, err := v.Query()
	if err == nil && status.State != svc.Stopped {
		status, err = v.Control(svc.Stop)
	}
	for err == nil && status.State != svc.Stopped {
		select {
		case <-ctx.Done():
			return errors.New("the service does not stop")
		case <-time.After(200 * time.Millisecond):
		}
		status, err = v.Query()
	}
	if err != nil {
		return fmt.Errorf("stop the service: %w", err)
	}
	return nil
}
