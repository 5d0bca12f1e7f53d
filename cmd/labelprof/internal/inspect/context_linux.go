// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package inspect

import (
	"fmt"
	"io"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	target "github.com/customlabels/otelcol-customlabels/internal/process"
)

// maxKeyIndexes is the number of attributes that a thread context can refer to.
const maxKeyIndexes = 256

// contextReport is the process context.
type contextReport struct {
	Error   string   `json:"error,omitempty"` // why it cannot be read
	Service string   `json:"service_name,omitempty"`
	Schema  string   `json:"thread_context_schema,omitempty"`
	Keys    []string `json:"thread_context_keys,omitempty"` // by index; "" if it has no meaning

	resource int // number of attributes
}

// describeContext takes over what the process says of itself.
func (r *processReport) describeContext(info *target.Info) {
	keys := info.Keys(int64(^uint64(0) >> 1)) // those of now
	r.keys = withIndexes(keys)
	if info.Context == nil {
		if info.ContextErr != "" {
			r.Context = &contextReport{Error: info.ContextErr}
		}
		return
	}
	r.Context = &contextReport{Schema: string(info.Context.Schema), resource: len(info.Context.Resource)}
	for i := range keys.Len() {
		name, _ := keys.Name(byte(i))
		r.Context.Keys = append(r.Context.Keys, name)
	}
	for _, a := range info.Context.Resource {
		if a.GetKey() == "service.name" {
			r.Context.Service = a.GetValue().GetStringValue()
		}
	}
}

// withIndexes names the key indexes that have no name "[N]".
func withIndexes(keys *labels.KeyMap) *labels.KeyMap {
	names := make([]string, maxKeyIndexes)
	for i := range names {
		name, ok := keys.Name(byte(i))
		if !ok {
			name = indexName(i)
		}
		names[i] = name
	}
	return labels.NewKeyMap(names)
}

func indexName(i int) string { return fmt.Sprintf("[%d]", i) }

func (c *contextReport) writeText(w io.Writer) {
	switch {
	case c == nil:
		fmt.Fprintln(w, "  context     none published")
	case c.Error != "":
		fmt.Fprintf(w, "  context     cannot be read: %s\n", terminal.Escape(c.Error))
	default:
		schema := "no thread contexts"
		if c.Schema != "" {
			schema = fmt.Sprintf("thread contexts of schema %s with %d attribute names", quoted(c.Schema), len(c.Keys))
		}
		fmt.Fprintf(w, "  context     service.name=%s, %d resource attributes, %s\n", quoted(c.Service), c.resource, schema)
	}
}
