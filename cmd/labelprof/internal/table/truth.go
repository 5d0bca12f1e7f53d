// SPDX-License-Identifier: Apache-2.0

package table

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

const maxTruthBytes = 16 << 20

// Truth is the CPU time of each label set of a process as the process measured it.
type Truth struct {
	PID  int64 `json:"pid"`
	Sets []struct {
		Labels map[string]string `json:"labels"`
		CPUNs  int64             `json:"cpu_ns"`
	} `json:"sets"`
}

// ReadTruth reads what a program has written about itself. The file may not be there yet
// (fs.ErrNotExist); one that is too large, or no JSON of this form, is refused.
func ReadTruth(path string) (Truth, error) {
	var t Truth
	file, err := os.Open(path)
	if err != nil {
		return t, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxTruthBytes+1))
	if err != nil {
		return t, err
	}
	if len(data) > maxTruthBytes {
		return t, fmt.Errorf("%s: more than %d bytes", path, maxTruthBytes)
	}
	if err := json.Unmarshal(data, &t); err != nil {
		return t, fmt.Errorf("decode %s: %w", path, err)
	}
	return t, nil
}
