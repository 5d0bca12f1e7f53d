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
	more   []string // of Go: values of further labels
	linked bool
	link   link

	dict  pprofile.ProfilesDictionary
	stack int32
}

// leaf is the function that a sample was taken in, if it has a name; that which the
// compiler has put others into.
func (s *truthSample) leaf() (name string) {
	locations := s.dict.StackTable().At(int(s.stack)).LocationIndices()
	if locations.Len() == 0 {
		return ""
	}
	for _, line := range s.dict.LocationTable().At(int(locations.At(0))).Lines().All() {
		name = s.dict.StringTable().At(int(s.dict.FunctionTable().At(int(line.FunctionIndex())).NameStrindex()))
	}
	return name
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
					if w != nil {
						j.see(w, &r.sample)
						continue
					}
					j.others += len(r.sample.times)
					if err := verifyOther(rp.Resource(), &r.sample); err != nil {
						j.foreign += len(r.sample.times)
						j.blame("PID %d: %v", pid.Int(), err)
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
	s.tid, s.linked, s.link = 0, false, link{}
	s.dict, s.stack = dict, sample.StackIndex()
	for _, i := range sample.AttributeIndices().All() {
		kv := dict.AttributeTable().At(int(i))
		switch key := r.keys[kv.KeyStrindex()]; key {
		case keyNone:
		case keyThread:
			s.tid = uint32(kv.Value().Int())
		case keyMore:
			s.more = append(s.more, text(kv.Value()))
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

// verifyOther checks a sample of a program that is none of this test's writers. It may be
// another test's; then its labels name it.
func verifyOther(resource pcommon.Resource, s *truthSample) (err error) {
	switch {
	case s.values[keyFn] != "":
		if name, _ := resource.Attributes().Get("process.executable.name"); !strings.HasPrefix(name.Str(), "gowriter-") {
			err = fmt.Errorf("%s has labels of a goroutine: %q", name.Str(), s.values)
		}
	case s.values[keyCheck] != "":
		_, _, _, err = verifyLabels(s)
	case s.values[keyAttrCheck] != "":
		_, _, _, err = verifyThreadContext(s)
	}
	return err
}

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
