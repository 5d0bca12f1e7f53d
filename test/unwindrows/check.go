package unwindrows

import (
	"debug/elf"
	"fmt"
	"os"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// Object is a file that was checked.
type Object struct {
	Report
	Path      string
	Machine   elf.Machine
	Source    unwind.Source
	FDEs      int
	Rows      int
	Bytes     int           // of the table
	TextBytes uint64        // of the file
	Took      time.Duration // to make the table
}

// Check makes the table of a file and compares it with readelf. The error is
// one of packages elffile and unwind, or says that readelf does not work.
func Check(path string) (*Object, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	e, err := elffile.New(file, info.Size())
	if err != nil {
		return nil, err
	}
	table, err := unwind.New(e, unwind.Limits{})
	if err != nil {
		return nil, err
	}
	o := &Object{
		Path: path, Machine: e.Machine, Source: table.Stats.Source, FDEs: table.Stats.FDEs,
		Rows: len(table.Rows), Bytes: table.Bytes(), Took: time.Since(start),
	}
	var text []elffile.Segment
	for s := range e.Loads() {
		if s.Flags&elf.PF_X != 0 {
			text = append(text, s)
			o.TextBytes += s.Filesz
		}
	}
	section := ".eh_frame"
	if o.Source == unwind.SourceDebugFrame {
		section = ".debug_frame"
	}
	ref, err := Read(path, section, e.Machine == elf.EM_AARCH64)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	o.Report = *Compare(ref, table, func(start, end uint64) bool {
		for _, s := range text {
			if start >= s.Vaddr && end <= s.Vaddr+s.Filesz {
				return true
			}
		}
		return false
	})
	return o, nil
}
