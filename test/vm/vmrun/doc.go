//go:build linux

// Command vmrun boots a kernel image in qemu, runs programs in it one after the other,
// and exits with the code of the first that failed:
//
//	vmrun -arch arm64 -kernel VMLINUZ -init GUESTINIT [-add SRC:DST]... -- BINARY [ARG]... [--next BINARY [ARG]...]...
//
// In front of a BINARY may stand KEY=VALUE words for its environment, as in a shell.
//
// run.sh beside it finds the kernel and builds GUESTINIT. It can be go test's -exec.
//
// The programs start in /guest: -add testdata:/guest/testdata puts test data there.
// /tmp, /run and /dev/shm are file systems in memory, mounted over what -add put there.
// The guest needs no kernel module: files go in by the initramfs, output and result
// come out by two PCI serial ports, so that kernel messages on the console never mix
// with them.
//
// Exit code: the program's own; 128+N when signal N ended it; 124 when the time limit
// has passed; 125 when the guest ended without a result (panic, out of memory, no boot)
// or on bad usage, both with the end of the console.
//
// It always emulates: a /dev/kvm that is there need not be able to boot these kernels, and
// aarch64 has none on x86-64 machines.
package main
