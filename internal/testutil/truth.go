// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Truth is the time of each label set as a writer measured it: the CPU time in mode
// shares, the time off the CPU in mode blocks.
type Truth struct {
	PID  int        `json:"pid"`
	ABI  string     `json:"abi"` // v0, v1, ctx
	Sets []TruthSet `json:"sets"`
}

// TruthSet is the time of one label set.
type TruthSet struct {
	Labels map[string]string `json:"labels"`
	CPU    time.Duration     `json:"cpu_ns"`
	OffCPU time.Duration     `json:"off_cpu_ns"`
	Blocks int               `json:"blocks"` // how often the thread has blocked
}

// ReadTruth reads the file that a writer keeps.
func ReadTruth(path string) (Truth, error) {
	var truth Truth
	data, err := os.ReadFile(path)
	if err != nil {
		return truth, err
	}
	if err := json.Unmarshal(data, &truth); err != nil {
		return truth, fmt.Errorf("decode %s: %w", path, err)
	}
	return truth, nil
}

// By sums the CPU time by the values of one label.
func (t Truth) By(key string) map[string]time.Duration {
	sums := map[string]time.Duration{}
	for _, set := range t.Sets {
		sums[set.Labels[key]] += set.CPU
	}
	return sums
}
