// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Truth is the CPU time of each label set as a writer in mode shares measured it.
type Truth struct {
	PID  int        `json:"pid"`
	ABI  string     `json:"abi"` // v0, v1, ctx
	Sets []TruthSet `json:"sets"`
}

// TruthSet is the CPU time of one label set.
type TruthSet struct {
	Labels map[string]string `json:"labels"`
	CPU    time.Duration     `json:"cpu_ns"`
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
