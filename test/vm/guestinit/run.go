//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/customlabels/otelcol-customlabels/test/vm/internal/guest"
)

// runAll runs the configured programs one after the other, also after one has failed.
func runAll(output port, result *guest.Result) error {
	b, err := os.ReadFile(guest.ConfigPath)
	if err != nil {
		return err
	}
	var config guest.Config
	if err := json.Unmarshal(b, &config); err != nil {
		return fmt.Errorf("decode %s: %w", guest.ConfigPath, err)
	}
	null, err := os.Open("/dev/null")
	if err != nil {
		return err
	}
	for _, c := range config.Commands {
		status, err := run(c, null, output.File)
		if err != nil {
			return err
		}
		result.Programs = append(result.Programs, status)
	}
	return nil
}

func run(c guest.Command, input, output *os.File) (guest.Status, error) {
	start := time.Now()
	p, err := os.StartProcess(c.Args[0], c.Args, &os.ProcAttr{
		Dir: guest.Dir, Env: c.Env, Files: []*os.File{input, output, output},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return guest.Status{}, err
	}
	for { // PID 1 also reaps what the programs orphaned
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return guest.Status{}, fmt.Errorf("wait for %s: %w", c.Args[0], err)
		}
		if pid != p.Pid {
			continue
		}
		status := guest.Status{Exit: ws.ExitStatus(), Seconds: time.Since(start).Seconds()}
		if ws.Signaled() {
			status.Signal = int(ws.Signal())
		}
		return status, nil
	}
}
