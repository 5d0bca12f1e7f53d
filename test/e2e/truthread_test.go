//go:build linux && (amd64 || arm64)

package e2e

import (
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// truthSample is what a truthJudge reads of a sample.
type truthSample struct {
	tid    uint32
	times  []uint64
	values [numTruthKeys]string
	more   []string // of Go: keys and values of further labels
	linked bool
	link   link
}

// truthKey is an attribute that proves a set.
type truthKey int

const (
	keyNone      truthKey = iota
	keyCheck              // of v0, v1 and Go
	keyPad                //
	keyFn                 // of Go
	keyMore               // of Go
	keyAttrCheck          // of a thread context
	keyAttrPad            //
	keyThread
	numTruthKeys
)

func truthKeyOf(name string) truthKey {
	switch name {
	case prefix + "check":
		return keyCheck
	case prefix + "pad":
		return keyPad
	case prefix + "fn":
		return keyFn
	case "check":
		return keyAttrCheck
	case "pad":
		return keyAttrPad
	case "thread.id":
		return keyThread
	}
	if strings.HasPrefix(name, prefix+"k") {
		return keyMore
	}
	return keyNone
}

// truthReader reads samples without a map for each, a hundred million times.
type truthReader struct {
	keys   []truthKey // by string
	sample truthSample
}

// judgeBatch takes a batch.
func (j *truthJudge) judgeBatch(p pprofile.Profiles) {
	r := &j.reader
	dict := p.Dictionary()
	r.begin(dict)
	for _, rp := range p.ResourceProfiles().All() {
		pid, _ := rp.Resource().Attributes().Get("process.pid")
		w := j.writers[pid.Int()]
		for _, sp := range rp.ScopeProfiles().All() {
			for _, prof := range sp.Profiles().All() {
				for _, sample := range prof.Samples().All() {
					r.read(dict, sample)
					switch {
					case w != nil:
						j.see(w, &r.sample)
					case r.sample.values[keyCheck] != "" || r.sample.values[keyAttrCheck] != "":
						j.foreign += len(r.sample.times)
						j.blame("PID %d has a writer's labels: %q", pid.Int(), r.sample.values)
					}
				}
			}
		}
	}
	j.endBatch()
}

// begin is called before samples are read that refer to a dictionary.
func (r *truthReader) begin(dict pprofile.ProfilesDictionary) {
	r.keys = r.keys[:0]
	for _, s := range dict.StringTable().All() {
		r.keys = append(r.keys, truthKeyOf(s))
	}
}

// read reads a sample, up to the next call.
func (r *truthReader) read(dict pprofile.ProfilesDictionary, sample pprofile.Sample) {
	s := &r.sample
	s.values = [numTruthKeys]string{}
	s.more = s.more[:0]
	s.tid, s.linked = 0, false
	for _, i := range sample.AttributeIndices().All() {
		kv := dict.AttributeTable().At(int(i))
		switch key := r.keys[kv.KeyStrindex()]; key {
		case keyNone:
		case keyThread:
			s.tid = uint32(kv.Value().Int())
		case keyMore:
			s.more = append(s.more, dict.StringTable().At(int(kv.KeyStrindex())), text(kv.Value()))
		default:
			s.values[key] = text(kv.Value())
		}
	}
	if i := sample.LinkIndex(); i != 0 {
		l := dict.LinkTable().At(int(i))
		s.linked, s.link = true, link{l.TraceID(), l.SpanID()}
	}
	s.times = appendTimes(s.times[:0], sample.TimestampsUnixNano())
}

func appendTimes(to []uint64, times pcommon.UInt64Slice) []uint64 {
	for i := range times.Len() {
		to = append(to, times.At(i))
	}
	return to
}

var errMixed = errors.New("labels of two kinds")

// verifyLabels is for v0 and v1.
func verifyLabels(s *truthSample) (owner, number uint64, none bool, err error) {
	check, pad := s.values[keyCheck], s.values[keyPad]
	if s.linked || s.values[keyAttrCheck] != "" || s.values[keyAttrPad] != "" {
		return 0, 0, false, errMixed
	}
	if check == "" && pad == "" {
		return 0, 0, true, nil
	}
	number, err = testutil.VerifyFidelity(s.tid, check, pad)
	return uint64(s.tid), number, false, err
}

// verifyThreadContext checks the ids and the attributes of a thread context, each for
// itself and against the other.
func verifyThreadContext(s *truthSample) (owner, number uint64, none bool, err error) {
	check, pad := s.values[keyAttrCheck], s.values[keyAttrPad]
	if s.values[keyCheck] != "" || s.values[keyPad] != "" {
		return 0, 0, false, errMixed
	}
	if !s.linked && check == "" && pad == "" {
		return 0, 0, true, nil
	}
	number, err = testutil.VerifyFidelityIDs(s.tid, s.link.traceID, s.link.spanID)
	if err != nil {
		return 0, 0, false, err
	}
	byAttributes, err := testutil.VerifyFidelity(s.tid, check, pad)
	if err == nil && number != byAttributes {
		err = fmt.Errorf("ids of set %d with the attributes of set %d", number, byAttributes)
	}
	return uint64(s.tid), number, false, err
}
