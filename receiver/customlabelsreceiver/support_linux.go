//go:build amd64 || arm64

package customlabelsreceiver

// supported tells why there can be no receiver on this system.
func supported() error { return nil }
