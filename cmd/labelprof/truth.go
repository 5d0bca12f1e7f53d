// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

const maxTruthBytes = 16 << 20

// truth is the CPU time of each label set of a process as the process measured it.
type truth struct {
	PID  int64 `json:"pid"`
	Sets []struct {
		Labels map[string]string `json:"labels"`
		CPUNs  int64             `json:"cpu_ns"`
	} `json:"sets"`
}

func readTruth(path string) (truth, error) {
	var t truth
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

// comparison sets what was sampled in the processes that tell their truth against
// it. Both sides are shares of labelled CPU time; a process none of whose samples
// has a label is on neither side.
type comparison struct {
	processes   int // on both sides
	told        int // that tell their truth
	sampledNs   int64
	unlabelled  int64 // CPU time without labels in these processes, in ns
	trueNs      int64
	sampledRows map[rowKey]int64
	trueRows    map[rowKey]int64
	trueValues  map[rowKey][]value
}

func (t *table) compare(truths []truth) comparison {
	c := comparison{
		told:        len(truths),
		sampledRows: map[rowKey]int64{},
		trueRows:    map[rowKey]int64{},
		trueValues:  map[rowKey][]value{},
	}
	for _, tr := range truths {
		if !t.hasLabels(tr.PID) {
			continue
		}
		c.processes++
		for key, ns := range t.shares {
			switch {
			case key.pid != tr.PID:
			case !t.isLabelled(key.row):
				c.unlabelled += ns
			default:
				c.sampledRows[key.row] += ns
				c.sampledNs += ns
			}
		}
		c.addTruth(t.by, tr)
	}
	return c
}

func (c *comparison) addTruth(by []string, tr truth) {
	for _, set := range tr.Sets {
		values := make([]value, len(by))
		for i, key := range by {
			values[i].text, values[i].present = set.Labels[key]
		}
		if !labelled(values) {
			continue
		}
		key := encodeValues(values)
		c.trueRows[key] += set.CPUNs
		c.trueValues[key] = values
		c.trueNs += set.CPUNs
	}
}

func (t *table) hasLabels(pid int64) bool {
	for key := range t.shares {
		if key.pid == pid && t.isLabelled(key.row) {
			return true
		}
	}
	return false
}

// isLabelled holds for every key but the one of all labels absent.
func (t *table) isLabelled(key rowKey) bool {
	return key != encodeValues(make([]value, len(t.by)))
}
