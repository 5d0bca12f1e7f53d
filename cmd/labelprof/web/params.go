// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// seriesBuckets is the number of columns of the time strip.
const seriesBuckets = 160

var errTooManyFilters = errors.New("too many filters")

// parseQuery reads a query from the parameters of a URL: those of the page itself, so
// that what it shows can be kept and passed on.
//
//	kind=cpu|off_cpu  from=MS&to=MS  by=KEY  q=TEXT  find=TEXT  zoom=ID
//	l.KEY=VALUE (again for another value)  n.KEY (without this label)
//	fn=NAME  module=FILE  frame=TYPE
//	cmp=KEY with a=VALUE, b=VALUE, each without this label if it is not there
//	afrom=MS&ato=MS&bfrom=MS&bto=MS in place of cmp: two ranges of time
//	group=KEY: the first level of the tree
func parseQuery(raw string) (*samplestore.Query, error) {
	params, err := url.ParseQuery(raw)
	if err != nil {
		return nil, fmt.Errorf("read the query: %w", err)
	}
	q := &samplestore.Query{By: params.Get("by"), Search: params.Get("q"), Find: params.Get("find"), Group: params.Get("group"), Buckets: seriesBuckets}
	switch kind := params.Get("kind"); kind {
	case "", "cpu":
	case "off_cpu":
		q.Kind = samplestore.OffCPU
	default:
		return nil, fmt.Errorf("read the query: no such kind: %q", kind)
	}
	if params.Has("to") {
		r, err := timeRange(params, "")
		if err != nil {
			return nil, err
		}
		q.FromMs, q.ToMs = r.FromMs, r.ToMs
	}
	if params.Has("zoom") {
		id, err := strconv.ParseUint(params.Get("zoom"), 16, 64)
		if err != nil {
			return nil, fmt.Errorf("read the zoom: %w", err)
		}
		q.Zoom = samplestore.NodeID(id)
	}
	if params.Has("ato") {
		a, errA := timeRange(params, "a")
		b, errB := timeRange(params, "b")
		if err := errors.Join(errA, errB); err != nil {
			return nil, err
		}
		q.Compare = &samplestore.Compare{Times: &[2]samplestore.Range{a, b}}
	} else if params.Has("cmp") {
		q.Compare = &samplestore.Compare{Key: params.Get("cmp"), A: value(params, "a"), B: value(params, "b")}
	}
	return q, filters(q, params)
}

// timeRange reads the range of a side, or that of all.
func timeRange(params url.Values, side string) (r samplestore.Range, err error) {
	var errTo error
	r.FromMs, err = strconv.ParseInt(params.Get(side+"from"), 10, 64)
	r.ToMs, errTo = strconv.ParseInt(params.Get(side+"to"), 10, 64)
	if err := errors.Join(err, errTo); err != nil {
		return r, fmt.Errorf("read the range of time: %w", err)
	}
	return r, nil
}

func value(params url.Values, name string) samplestore.Value {
	return samplestore.Value{Text: params.Get(name), Present: params.Has(name)}
}

func filters(q *samplestore.Query, params url.Values) error {
	byKey := map[string]*samplestore.Filter{}
	of := func(key string) *samplestore.Filter {
		if byKey[key] == nil {
			byKey[key] = &samplestore.Filter{Key: key}
		}
		return byKey[key]
	}
	for name, values := range params {
		if key, ok := strings.CutPrefix(name, "l."); ok {
			for _, v := range values {
				of(key).Values = append(of(key).Values, samplestore.Value{Text: v, Present: true})
			}
		}
		if key, ok := strings.CutPrefix(name, "n."); ok {
			of(key).Values = append(of(key).Values, samplestore.Value{})
		}
	}
	count := 0
	for _, f := range byKey {
		count += len(f.Values)
		q.Filters = append(q.Filters, *f)
	}
	for name, property := range map[string]samplestore.Property{
		"fn": samplestore.ByFunction, "module": samplestore.ByModule, "frame": samplestore.ByType,
	} {
		for _, text := range params[name] {
			q.Frames = append(q.Frames, samplestore.FrameFilter{Property: property, Text: text})
		}
	}
	if count+len(q.Frames) > samplestore.MaxFilters {
		return errTooManyFilters
	}
	return nil
}
