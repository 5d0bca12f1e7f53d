// Package e2e tests the receiver from end to end: real writers, the real
// receiver on the running kernel, and either a consumer in this process or the
// collector that ocb builds. Every batch goes through the conformance checker.
//
// Each test prints the figure that it stands for. They need root.
package e2e
