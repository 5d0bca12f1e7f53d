//go:build linux && (amd64 || arm64)

package pipeline

import (
	"os"
	"unsafe"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// unwinder gives the BPF programs the unwind rows that the process table builds.
type unwinder struct {
	sampler *bpf.Sampler
}

var _ process.Unwinder = unwinder{}

// AddRows implements process.Unwinder.
func (u unwinder) AddRows(t *unwind.Table) (process.RowsID, error) {
	table := bpf.UnwindTable{
		Rules: make([]bpf.UnwindRule, len(t.Rules)),
		Index: t.Index,
		Rows:  unsafe.Slice((*uint32)(unsafe.SliceData(t.Rows)), len(t.Rows)), // a Row is one
	}
	for i, r := range t.Rules {
		table.Rules[i] = bpf.UnwindRule{
			CFA: uint8(r.CFA), Arg: r.Arg, RA: uint8(r.RA), FP: uint8(r.FP),
			CFAOffset: r.CFAOffset, RAOffset: r.RAOffset, FPOffset: r.FPOffset,
		}
	}
	id, err := u.sampler.AddUnwindTable(&table)
	return process.RowsID(id), err
}

// RemoveRows implements process.Unwinder.
func (u unwinder) RemoveRows(id process.RowsID) error {
	return u.sampler.RemoveUnwindTable(bpf.TableID(id))
}

// SetFileRows implements process.Unwinder.
func (u unwinder) SetFileRows(file process.FileKey, id process.RowsID, texts []process.FileText) error {
	list := make([]bpf.FileText, len(texts))
	for i, t := range texts {
		list[i] = bpf.FileText(t)
	}
	return u.sampler.SetFileRows(bpf.FileKey(file), bpf.TableID(id), list)
}

// fileNames names files as the sampler does.
func fileNames(sampler *bpf.Sampler) func(*os.File) (process.FileKey, error) {
	return func(f *os.File) (process.FileKey, error) {
		key, err := sampler.NameFile(f)
		return process.FileKey(key), err
	}
}

// SetMappings implements process.Unwinder.
func (u unwinder) SetMappings(id process.ID, mappings []process.RowMapping, execPages uint64) error {
	list := make([]bpf.UnwindMapping, len(mappings))
	for i, m := range mappings {
		list[i] = bpf.UnwindMapping{
			Start: m.Start, Limit: m.Limit, Text: m.Text, Table: bpf.TableID(m.Rows), Blocks: m.Blocks,
		}
	}
	return u.sampler.SetUnwindMappings(bpf.ProcessID(id), list, execPages)
}

// ForgetMappings implements process.Unwinder.
func (u unwinder) ForgetMappings(id process.ID) error {
	return u.sampler.ForgetMappings(bpf.ProcessID(id))
}
