// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"

	"google.golang.org/grpc/mem"
)

// rawCodec leaves messages as they are.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("marshal a %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("unmarshal into a %T", v)
	}
	*b = data.Materialize()
	return nil
}
