// Command configtable writes the settings of metadata.yaml as the table of a page, in their
// order and with their bounds, which the table of mdatagen has not.
//
//	configtable metadata.yaml README.md
package main

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// What the table stands between.
const (
	begin = "<!-- begin of the table that is made from metadata.yaml -->\n"
	end   = "<!-- end of the table that is made from metadata.yaml -->\n"
)

// property is a setting, or a section of them, as mdatagen has it.
type property struct {
	Description string    `yaml:"description"`
	Ref         string    `yaml:"$ref"`
	Properties  yaml.Node `yaml:"properties"` // in their order
	Default     yaml.Node `yaml:"default"`
	Enum        []string  `yaml:"enum"`
	MaxLength   string    `yaml:"maxLength"`
	MaxItems    string    `yaml:"maxItems"`
	Values      struct {
		Ref string `yaml:"$ref"`
	} `yaml:"values"`
	Bounds   `yaml:",inline"`
	GoStruct Bounds `yaml:"go_struct"` // of a duration
}

// Bounds are as they are written.
type Bounds struct {
	Minimum string `yaml:"minimum"`
	Maximum string `yaml:"maximum"`
}

type metadata struct {
	Config  property            `yaml:"config"`
	Configs map[string]property `yaml:"exported_configs"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "configtable:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("want metadata.yaml and a page, not %q", args)
	}
	source, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	rows, err := table(source)
	if err != nil {
		return fmt.Errorf("read %s: %w", args[0], err)
	}
	page, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s has no place for the table", args[1])
	}
	return os.WriteFile(args[1], []byte(before+begin+rows+end+after), 0o644) //nolint:gosec // a page for everyone
}

// table returns the settings of metadata.yaml as the rows of a table.
func table(source []byte) (string, error) {
	var m metadata
	if err := yaml.Unmarshal(source, &m); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("| key | default | bounds | what it is | set by whom, when |\n|---|---|---|---|---|\n")
	if err := m.write(&b, "", "", m.Config); err != nil {
		return "", err
	}
	return b.String(), nil
}

// write adds the settings of a section. What is said of an attribute is said of its block.
func (m *metadata) write(b *strings.Builder, prefix, said string, section property) error {
	list := section.Properties.Content
	for i := 0; i+1 < len(list); i += 2 {
		var p property
		key := prefix + list[i].Value
		if err := list[i+1].Decode(&p); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if p.Ref != "" {
			p.Properties = m.Configs[p.Ref].Properties
			if err := m.write(b, key+"::", p.Description, p); err != nil {
				return err
			}
			continue
		}
		if len(p.Properties.Content) > 0 {
			if err := m.write(b, key+"::", "", p); err != nil {
				return err
			}
			continue
		}
		what, who, ok := halves(cmp.Or(said, p.Description))
		if !ok {
			return fmt.Errorf("%s: its description does not say who sets it, and when", key)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", key, p.byDefault(), p.bounds(), what, who)
	}
	return nil
}

// owners begin the part of a description that says who sets a key, and when.
var owners = regexp.MustCompile(`^(.*)\. ((?:Operator|Backend|Privacy|Programs)(?:, [a-z]+)*: .*)\.$`)

// names are what is written as code.
var names = regexp.MustCompile(`\b[a-zA-Z]+(?:_[a-zA-Z]+)+\b|custom_labels\.`)

func halves(description string) (what, who string, ok bool) {
	m := owners.FindStringSubmatch(names.ReplaceAllString(description, "`$0`"))
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

func (p *property) byDefault() string {
	if p.Default.Value == "" {
		return "none"
	}
	return "`" + p.Default.Value + "`"
}

func (p *property) bounds() string {
	low, high := cmp.Or(p.Minimum, p.GoStruct.Minimum), cmp.Or(p.Maximum, p.GoStruct.Maximum)
	switch {
	case len(p.Enum) > 0:
		return "`" + strings.Join(p.Enum, "`, `") + "`"
	case p.MaxItems != "":
		kind := p.Values.Ref[strings.LastIndexByte(p.Values.Ref, '_')+1:]
		return "up to " + p.MaxItems + " " + cmp.Or(kind, "key") + "s"
	case p.MaxLength != "":
		return "up to " + p.MaxLength + " bytes"
	case high != "":
		return low + " to " + high
	}
	return ""
}
