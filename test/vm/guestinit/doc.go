//go:build linux

// Command guestinit is PID 1 of a guest that vmrun boots: it mounts what programs
// expect, runs those that its configuration names, hands out their output, their
// status and the files they left, and powers the guest off, whatever happens.
//
// Where the guest has a systemd, that becomes PID 1 once all is mounted, and starts
// guestinit as its only service.
//
// It needs no kernel module, no shell and no other file than its configuration.
package main
