//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"

	"github.com/customlabels/otelcol-customlabels/test/vm/internal/guest"
)

func main() {
	if os.Getpid() != 1 && os.Getenv(serviceEnv) == "" {
		fmt.Fprintln(os.Stderr, "guestinit: it is PID 1 of a virtual machine, and powers it off")
		os.Exit(2)
	}
	if err := boot(); err != nil {
		fmt.Println("guestinit:", err) // on the console, of which vmrun shows the end
	}
	syscall.Sync()
	err := syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF)
	fmt.Println("guestinit: power off:", err)
	select {} // PID 1 must not end
}

// boot makes the guest ready and serves, or lets systemd start it for that.
func boot() error {
	if os.Getpid() == 1 {
		if err := mountAll(); err != nil {
			return err
		}
		if err := sayUp(); err != nil {
			return err
		}
		if _, err := os.Stat(systemdPath); err == nil {
			return startSystemd()
		}
	}
	return serve()
}

// sayUp tells by way of the control port that the guest is in user space.
func sayUp() error {
	ports, err := openPorts()
	if err != nil {
		return err
	}
	defer ports.close()
	_, err = ports.control.WriteString(guest.Up + "\n")
	ports.control.drain()
	return err
}

// serve does all of the guest's work. An error that it returns could not be told by
// way of the control port.
func serve() error {
	result := guest.Result{Release: kernelRelease(), PageSize: os.Getpagesize()}
	if b, err := os.ReadFile("/proc/uptime"); err == nil {
		fmt.Sscan(string(b), &result.Boot) //nolint:errcheck // a figure, no more
	}
	enableTracing()
	ports, err := openPorts()
	if err != nil {
		return err
	}
	if err := runAll(ports.output, &result); err != nil {
		result.Err = err.Error()
	}
	ports.output.drain()

	disk, err := os.OpenFile("/dev/nvme0n1", os.O_WRONLY, 0)
	if err == nil {
		result.Disk = true
		err = writeOut(disk)
		if e := disk.Sync(); err == nil {
			err = e
		}
		if err != nil && result.Err == "" {
			result.Err = fmt.Sprintf("write %s to the disk: %v", guest.OutDir, err)
		}
	}
	line, err := json.Marshal(result)
	if err != nil {
		return err
	}
	if _, err := ports.control.Write(append(line, '\n')); err != nil {
		return err
	}
	if !result.Disk {
		if err := writeOut(ports.control); err != nil {
			return err
		}
	}
	ports.control.drain()
	return nil
}

func kernelRelease() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return err.Error()
	}
	return string(b[:max(0, len(b)-1)])
}
