//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/customlabels/otelcol-customlabels/internal/testutil/ingest"
)

// Field numbers of opentelemetry.proto.profiles.v1development and common.v1, release 1.10.
// 1.10 knows references into the dictionary (key_strindex, string_value_strindex), but what
// is built with it does not follow them.
const (
	valueString, valueInt, valueArray, valueList = 1, 3, 5, 6
	valueStrindex                                = 8
)

// A backendRequest is a request as backends of proto 1.10 read it, and why they refuse it or
// lose some of it.
type backendRequest struct {
	wireReader
	dictionary backendDictionary
	profiles   []backendProfile
	samples    []backendSample
	refused    []string
}

// A backendProfile is what Pyroscope tells profiles of one request, or of several, apart by: of two it keeps one. There
// is more, which a service's processes may have in common: whole numbers, such as their PIDs, count in newer versions only.
type backendProfile struct {
	service string
	start   uint64
}

type backendDictionary struct {
	strings                                       []string
	mappings, locations, functions, links, stacks []wireMessage
	attributes                                    []wireMessage
}

// A backendSample is one sample: labels are text attributes, as both Pyroscope and Parca keep them.
type backendSample struct {
	service   string
	resource  map[string]string
	labels    map[string]string
	functions []string // leaf first; without names: addresses
	count     int
	trace     string
	span      string
}

func (r *backendRequest) refuse(format string, args ...any) {
	if len(r.refused) < 20 {
		r.refused = append(r.refused, fmt.Sprintf(format, args...))
	}
}

// readAsBackend reads an ExportProfilesServiceRequest.
func readAsBackend(data []byte) *backendRequest {
	r := &backendRequest{}
	request, err := parseWire(data)
	if err != nil {
		r.refuse("no protobuf: %v", err)
		return r
	}
	for _, d := range r.messages(request, 2) {
		r.readDictionary(d)
	}
	for i, rp := range r.messages(request, 1) {
		where := fmt.Sprintf("resource_profiles[%d]", i)
		resource := map[string]string{}
		for _, res := range r.messages(rp, 1) {
			resource = r.attributes(where+".resource", r.messages(res, 1))
		}
		if resource["service.name"] == "" {
			r.refuse("%s: no service.name in %v", where, resource)
		}
		for _, sp := range r.messages(rp, 2) {
			for _, scope := range r.messages(sp, 1) {
				r.attributes(where+".scope", r.messages(scope, 3))
			}
			for _, p := range r.messages(sp, 2) {
				r.profile(where, resource, p)
			}
		}
	}
	if r.err != nil {
		r.refuse("no protobuf: %v", r.err)
	}
	return r
}

func (r *backendRequest) readDictionary(d wireMessage) {
	for _, v := range d[5] {
		r.dictionary.strings = append(r.dictionary.strings, string(v.bytes))
	}
	r.dictionary.mappings, r.dictionary.locations, r.dictionary.functions = r.messages(d, 1), r.messages(d, 2), r.messages(d, 3)
	r.dictionary.links, r.dictionary.attributes, r.dictionary.stacks = r.messages(d, 4), r.messages(d, 6), r.messages(d, 7)
}

// attributes reads those of a resource or scope. An empty key, or a text that is not where it
// belongs, is what Parca refuses, and what Pyroscope refuses or loses.
func (r *backendRequest) attributes(where string, list []wireMessage) map[string]string {
	found := map[string]string{}
	for _, kv := range list {
		key := kv.text(1)
		if key == "" {
			r.refuse("%s: an attribute with an empty key (key_strindex %d)", where, kv.number(3))
		}
		if kv.number(3) != 0 {
			r.refuse("%s: the key of %q is a reference", where, key)
		}
		for _, v := range r.messages(kv, 2) {
			found[key] = r.value(where+"."+key, v)
		}
	}
	return found
}

func (r *backendRequest) value(where string, v wireMessage) string {
	if len(v[valueStrindex]) > 0 {
		r.refuse("%s: the value is a reference (string_value_strindex %d)", where, v.number(valueStrindex))
	}
	for _, list := range r.messages(v, valueArray) {
		for _, item := range r.messages(list, 1) {
			r.value(where+"[]", item)
		}
	}
	for _, list := range r.messages(v, valueList) {
		r.attributes(where, r.messages(list, 1))
	}
	if len(v[valueInt]) > 0 {
		return strconv.FormatInt(int64(v.number(valueInt)), 10)
	}
	return v.text(valueString)
}

func (r *backendRequest) string(where string, i uint64) string {
	if i >= uint64(len(r.dictionary.strings)) {
		r.refuse("%s: string %d of %d", where, i, len(r.dictionary.strings))
		return ""
	}
	return r.dictionary.strings[i]
}

// entry returns an element of a table, empty where there is none.
func (r *backendRequest) entry(where string, table []wireMessage, i uint64) wireMessage {
	if i >= uint64(len(table)) {
		r.refuse("%s: %d of %d", where, i, len(table))
		return wireMessage{}
	}
	return table[i]
}

func (r *backendRequest) profile(where string, resource map[string]string, p wireMessage) {
	kind := func(field protowire.Number) string {
		t := wireMessage{}
		for _, m := range r.messages(p, field) {
			t = m
		}
		return r.string(where+".type", t.number(1)) + "/" + r.string(where+".unit", t.number(2))
	}
	if sampleType, periodType := kind(1), kind(5); sampleType != "samples/count" || periodType != "cpu/nanoseconds" || p.number(6) == 0 {
		r.refuse("%s: %s of %s each %d is no CPU profile that Pyroscope knows", where, sampleType, periodType, p.number(6))
	}
	r.profiles = append(r.profiles, backendProfile{resource["service.name"], p.number(3)})
	for _, s := range r.messages(p, 2) {
		r.samples = append(r.samples, r.sample(where, resource, s))
	}
}

func (r *backendRequest) sample(where string, resource map[string]string, s wireMessage) backendSample {
	if n := len(r.numbers(s, 4)); n > 1 {
		r.refuse("%s: a CPU sample with %d values", where, n)
	}
	found := backendSample{service: resource["service.name"], resource: resource, labels: map[string]string{}, count: len(s[5])}
	series := r.series(where, resource)
	if len(s[5]) == 1 && s[5][0].isText { // packed
		found.count = len(s[5][0].bytes) / 8
	}
	for _, i := range r.numbers(s, 2) {
		a := r.entry(where+": attribute", r.dictionary.attributes, i)
		key := r.string(where+": key of an attribute", a.number(1))
		if key == "" {
			r.refuse("%s: attribute %d of a sample has an empty key", where, i)
		}
		for _, v := range r.messages(a, 2) {
			value := r.value(where+"."+key, v)
			if len(v[valueString]) > 0 {
				found.labels[key] = value
			}
			if err := series.Add(key, value); err != nil {
				r.refuse("%s: %v", where, err)
			}
		}
	}
	link := r.entry(where+": link", r.dictionary.links, s.number(3))
	found.trace, found.span = fmt.Sprintf("%x", link.text(1)), fmt.Sprintf("%x", link.text(2))
	for _, i := range r.numbers(r.entry(where+": stack", r.dictionary.stacks, s.number(1)), 1) {
		l := r.entry(where+": location", r.dictionary.locations, i)
		r.entry(where+": mapping", r.dictionary.mappings, l.number(1))
		name := fmt.Sprintf("%#x", l.number(2))
		for _, line := range r.messages(l, 3) {
			f := line.number(1)
			if name = r.string(where+": name of a function", r.entry(where+": function", r.dictionary.functions, f).number(1)); f == 0 || name == "" {
				r.refuse("%s: a line with function %d, %q", where, f, name)
			}
		}
		found.functions = append(found.functions, name)
	}
	if len(found.functions) == 0 {
		r.refuse("%s: a sample without a stack", where)
	}
	return found
}

// series are the labels that Pyroscope makes of a resource, of whole numbers, too, as its newer versions do.
func (r *backendRequest) series(where string, resource map[string]string) ingest.Labels {
	found := ingest.Labels{"service_name": resource["service.name"]}
	for key, value := range resource {
		if err := found.Add(key, value); err != nil {
			r.refuse("%s.resource: %v", where, err)
		}
	}
	return found
}

// label is a label of a writer, whatever its prefix.
func (s *backendSample) label(key string) string {
	for name, value := range s.labels {
		if strings.TrimPrefix(name, prefix) == key {
			return value
		}
	}
	return ""
}
