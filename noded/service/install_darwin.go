package service

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// place is where the job goes, and launchd's name of the domain: of the machine for root, else of the user.
func place() (dir, domain string, err error) {
	if os.Getuid() == 0 {
		return "/Library/LaunchDaemons", "system", nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", "", fmt.Errorf("find the user's home: %w", err)
	}
	return filepath.Join(home, "Library", "LaunchAgents"), fmt.Sprintf("gui/%d", os.Getuid()), nil
}

// Install writes the job and starts it, now and at every boot (or login, for a user's). It returns what it did.
func Install(ctx context.Context, s Service) (string, error) {
	dir, domain, err := place()
	if err != nil {
		return "", err
	}
	if s.Log == "" && domain != "system" {
		s.Log = filepath.Join(filepath.Dir(dir), "Logs", "iop-noded.log")
	}
	text, err := s.Text(Launchd)
	if err != nil {
		return "", err
	}
	log := s.Log
	if log == "" {
		log = logDefault
	}
	for _, d := range []string{dir, filepath.Dir(log)} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return "", fmt.Errorf("make a directory: %w", err)
		}
	}
	path := filepath.Join(dir, Label+".plist")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return "", fmt.Errorf("write the job: %w", err)
	}
	_ = call(ctx, "launchctl", "bootout", domain+"/"+Label) // an older one, if there is
	if err := call(ctx, "launchctl", "bootstrap", domain, path); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s is installed and started; its log: %s", path, log), nil
}

// Uninstall stops the service and removes the job. The node file and the log stay.
func Uninstall(ctx context.Context) (string, error) {
	dir, domain, err := place()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, Label+".plist")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the service is not installed: %w", err)
	}
	if err := call(ctx, "launchctl", "bootout", domain+"/"+Label); err != nil {
		return "", err
	}
	if err := os.Remove(path); err != nil {
		return "", fmt.Errorf("remove the job: %w", err)
	}
	return path + " is stopped and removed", nil
}
