// SPDX-License-Identifier: Apache-2.0

// Command release writes the bill of materials of a program, as CycloneDX 1.6 in JSON: the
// modules that it was built from, as the Go linker has noted them in it. The same program
// has the same bill. Or it writes the licenses of these modules, of several programs.
package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"path"
	"runtime/debug"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) < 3 || os.Args[1] != "licenses" && len(os.Args) > 3 {
		fmt.Fprintln(os.Stderr, "usage: release VERSION PROGRAM, or release licenses PROGRAM...")
		os.Exit(2)
	}
	var err error
	if os.Args[1] == "licenses" {
		err = writeLicenses(os.Stdout, os.Args[2:])
	} else {
		err = writeBill(os.Stdout, os.Args[1], os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// writeBill writes the bill of a program of the given version.
func writeBill(w io.Writer, version, program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read what %s was built from: %w", program, err)
	}
	bom := cyclonedx.NewBOM()
	main := component(&debug.Module{Path: info.Main.Path, Version: "v" + version}, cyclonedx.ComponentTypeApplication)
	main.Name = path.Base(program)
	bom.Metadata = &cyclonedx.Metadata{Component: &main}
	std := component(&debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}, cyclonedx.ComponentTypeLibrary)
	all := []cyclonedx.Component{std}
	for _, m := range info.Deps {
		used := m
		switch {
		case m.Replace != nil && m.Replace.Version == "(devel)": // by a folder: the checkout
			used = &debug.Module{Path: m.Path, Version: "v" + version}
		case m.Replace != nil:
			used = m.Replace
		}
		all = append(all, component(used, cyclonedx.ComponentTypeLibrary))
	}
	bom.Components = &all
	var refs []string
	for _, c := range all {
		refs = append(refs, c.BOMRef)
	}
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	encoder := cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.EncodeVersion(bom, cyclonedx.SpecVersion1_6); err != nil {
		return fmt.Errorf("write the bill of %s: %w", program, err)
	}
	return nil
}

func component(m *debug.Module, kind cyclonedx.ComponentType) cyclonedx.Component {
	url := "pkg:golang/" + m.Path + "@" + m.Version
	return cyclonedx.Component{BOMRef: url, Type: kind, Name: m.Path, Version: m.Version, PackageURL: url}
}
