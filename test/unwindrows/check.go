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
	Golang    bool
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
	// Of what nothing describes, readelf says nothing.
	table, err := unwind.New(e, unwind.Limits{CodeBytes: 1})
	if err != nil {
		return nil, err
	}
	o := &Object{
		Path: path, Machine: e.Machine, Source: table.Stats.Source, Golang: table.Stats.GoFunctions > 0,
		Rows: len(table.Rows), Bytes: table.Bytes(), Took: time.Since(start),
	}
	v := view{table: table}
	for s := range e.Loads() {
		if s.Flags&elf.PF_X != 0 {
			v.text = append(v.text, s)
			o.TextBytes += s.Filesz
		}
	}
	for _, name := range []string{".plt", ".plt.sec", ".plt.got", ".iplt"} {
		if s, ok, err := e.Section(name); err == nil && ok {
			v.linkage = append(v.linkage, s)
		}
	}
	sections := []string{".eh_frame"}
	if table.Stats.GoFunctions > 0 {
		if v.golang, err = goFunctions(e, file); err != nil {
			return nil, fmt.Errorf("read pclntab of %s: %w", path, err)
		}
		sections = append(sections, ".debug_frame")
	} else if o.Source == unwind.SourceDebugFrame {
		sections = []string{".debug_frame"}
	}
	ref, err := Read(path, e.Machine == elf.EM_AARCH64, sections...)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	o.Report = *compare(ref, &v)
	return o, nil
}
