//go:build linux

package main

import (
	"fmt"
	"os"
	"syscall"
)

const (
	systemdPath = "/lib/systemd/systemd"
	serviceDir  = "/run/systemd/system"
	serviceName = "guestinit.service"
	// serviceEnv tells guestinit that systemd has started it.
	serviceEnv = "GUESTINIT_SERVICE"
)

// startSystemd makes this process systemd, which starts guestinit and nothing else.
func startSystemd() error {
	if err := os.MkdirAll(serviceDir, 0o755); err != nil {
		return err
	}
	const unit = "[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/init\nStandardOutput=file:/dev/console\nStandardError=inherit\n" +
		"Environment=" + serviceEnv + "=1\n"
	if err := os.WriteFile(serviceDir+"/"+serviceName, []byte(unit), 0o644); err != nil {
		return err
	}
	err := syscall.Exec(systemdPath, []string{systemdPath, "--unit=" + serviceName}, []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"})
	return fmt.Errorf("start %s: %w", systemdPath, err)
}
