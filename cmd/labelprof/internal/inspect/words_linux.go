// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package inspect

import (
	"encoding/binary"
	"fmt"
	"path"

	"github.com/customlabels/otelcol-customlabels/internal/labelread"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// reasonOf says in words why a thread has no labels in a source, "" if it has some.
func reasonOf(source *sourceReport, reading *labelread.Reading) string {
	switch reading.Outcome {
	case record.OutcomePresent, record.OutcomeTruncated:
		return ""
	case record.OutcomeNone:
		return whyNone(source.source.ABI, reading)
	case record.OutcomeUpdating:
		if source.source.ABI == record.ABIThreadContextNodeJS {
			return "the context has ended or is being changed, or V8 is moving it"
		}
		if source.source.ABI == record.ABIGo {
			return "a goroutine begins or ends on this thread"
		}
		return "the record is being changed: valid is 0"
	case record.OutcomeNotAllocated:
		return "not allocated: this thread has never touched the thread-local variables of " + path.Base(source.File)
	case record.OutcomeStaleModule:
		return "not allocated: this thread has not touched the thread-local variables of " + path.Base(source.File) + " since it was loaded"
	case record.OutcomeNoThreadPointer:
		return "the thread has no thread pointer yet"
	}
	return fmt.Sprint(reading.Err)
}

// whyNone tells the ways to have no labels apart.
func whyNone(abi record.ABI, reading *labelread.Reading) string {
	slots := binary.LittleEndian.Uint32(reading.Block[4:]) // label_block.count
	switch {
	case abi == record.ABIThreadContextNodeJS && reading.Pointer == 0:
		return "no labels: this thread runs no JavaScript that has published any"
	case abi == record.ABIThreadContextNodeJS:
		return "no labels: the async context that runs has none"
	case abi == record.ABIGo && reading.Pointer == 0:
		return "no labels: this thread runs no code of Go"
	case abi == record.ABIGo:
		return "no labels: the goroutine that runs has none, or none runs"
	case abi != record.ABIV0 && reading.Pointer == 0:
		return "no labels: the pointer is NULL"
	case slots == 0:
		return "no labels: the set is empty"
	}
	return fmt.Sprintf("no labels: none of the %d slots has a key and a value", slots)
}

// irregularities says what is odd about labels that could be read.
func irregularities(c *labels.Counts) (all []string) {
	for _, anomaly := range []struct {
		kind labels.Anomaly
		what string
	}{
		{labels.AnomalyNullValue, "value NULL, left out"},
		{labels.AnomalyDuplicateKey, "same key again, left out"},
		{labels.AnomalyHalfID, "only one of trace id and span id set, no link"},
		{labels.AnomalyTruncatedKey, "key cut to 256 bytes"},
		{labels.AnomalyTruncatedValue, "value cut"},
	} {
		if n := c[anomaly.kind]; n > 0 {
			all = append(all, fmt.Sprintf("%d × %s", n, anomaly.what))
		}
	}
	return all
}

// modelText says how a file reaches its variable, in words of compilers.
func modelText(model string) string {
	switch model {
	case tlsresolve.LocalExec.String():
		return model + " (in the executable, at an offset that the linker has set)"
	case tlsresolve.InitialExec.String():
		return model + " (a slot with the offset from the thread pointer)"
	case tlsresolve.Descriptor.String():
		return model + " (-mtls-dialect=gnu2 or desc: a slot with a descriptor)"
	case tlsresolve.GeneralDynamic.String():
		return model + " (__tls_get_addr: slots with module and offset)"
	case tlsresolve.ModuleOnly.String():
		return model + " (no slot: from the dynamic loader's list of libraries)"
	case "":
		return "not known"
	}
	return model
}

func (l *locationReport) String() string {
	if l.Kind == record.TLSRegister.String() {
		return "register x28"
	}
	if l.Module == 0 {
		sign, n := "+", l.Offset
		if n < 0 {
			sign, n = "-", -n
		}
		return fmt.Sprintf("thread pointer %s %d", sign, n)
	}
	text := fmt.Sprintf("module %d + %d in the DTV", l.Module, l.Offset)
	if l.Generation != 0 {
		text += fmt.Sprintf(", generation %d", l.Generation)
	}
	return text
}

// stateText says what became of a source.
func stateText(s labelsource.State) string {
	switch s {
	case labelsource.Active:
		return "labels can be read"
	case labelsource.NotRelocated:
		return "the dynamic loader has not told yet where the variable is"
	case labelsource.NoRelocation:
		return "nothing tells where the loader has put the variable"
	case labelsource.UnsupportedSchema:
		return "the process context says that thread contexts are of another form"
	case labelsource.UnsupportedVersion:
		return "a version, custom_labels_abi_version or V8's, that is not supported"
	case labelsource.UnsupportedModel:
		return "the way in which the file reaches the variable is not supported"
	case labelsource.Undefined:
		return "the dynamic loader found no definition of the variable"
	case labelsource.NotProgram:
		return "defined by an executable that the process maps but does not run"
	case labelsource.Unreadable:
		return "the file, or the memory of the process, does not make sense"
	case labelsource.Duplicate:
		return "the same variable as another source"
	case labelsource.OverLimit:
		return "left out: there are enough other sources"
	}
	return s.String()
}
