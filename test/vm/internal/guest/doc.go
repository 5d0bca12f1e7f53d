// Package guest is what vmrun and guestinit, the two ends of a virtual machine's run,
// tell each other: Config goes in as a file of the initramfs, Result comes out as one
// line on the control port.
package guest
