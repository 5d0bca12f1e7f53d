// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package inspect

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// TestAdvice: for each outcome and language there is something to do, in sentences that name what
// to take: a library, a flag, a version, a file or a command.
func TestAdvice(t *testing.T) {
	languages := []language{anyLanguage, languageGo, languageNode, languagePython, languageJava}
	outcomes := []string{outcomeNoSource, outcomeNoLabels}
	for s := labelsource.Active + 1; s.String() != "unknown"; s++ {
		if s != labelsource.Duplicate { // the other one is read
			outcomes = append(outcomes, s.String())
		}
	}
	for o := record.OutcomeNone; o < record.NumOutcomes; o++ {
		switch o {
		case record.OutcomeNone, record.OutcomePresent, record.OutcomeTruncated, record.OutcomeNoRows, record.OutcomeCompat:
		default:
			outcomes = append(outcomes, o.String())
		}
	}
	used := map[string]bool{}
	for _, outcome := range outcomes {
		for _, l := range languages {
			text := adviceOn(outcome, l)
			require.NotEmpty(t, text, "%s %s", outcome, l)
			used[text] = true
		}
	}
	seen := map[string]bool{}
	for _, a := range advices() {
		require.True(t, used[a.text], "no outcome leads to: %s", a.text)
		require.False(t, seen[a.outcome+" "+string(a.language)], "twice: %s %s", a.outcome, a.language)
		seen[a.outcome+" "+string(a.language)] = true
		require.Regexp(t, `^[A-Z].*\.$`, a.text)
	}
	// What stops people most, in each language.
	for l, names := range map[language][]string{
		anyLanguage:    {"examples/publish/c/labels.h", "-Wl,--export-dynamic-symbol=custom_labels_current_set"},
		languageGo:     {"runtime/pprof", "Go 1.22"},
		languageNode:   {"@datadog/pprof 5.20", "DD_TRACE_OTEL_CTX_ENABLED=true", "Node.js 24", "--experimental-async-context-frame"},
		languagePython: {"examples/publish/python/labels.py", "ddtrace 4.13"},
		languageJava:   {"labels/Labels.java", "--enable-native-access=ALL-UNNAMED", "Java 22"},
	} {
		for _, name := range names {
			require.Contains(t, adviceOn(outcomeNoSource, l), name)
		}
	}
	for _, a := range advices() {
		for word := range strings.FieldsSeq(a.text) {
			if path, ok := strings.CutPrefix(strings.Trim(word, ",.;:()"), "examples/"); ok {
				_, err := os.Stat("../../../../examples/" + path)
				require.NoError(t, err, a.text)
			}
		}
	}
}

// TestInspectAdvises: the advice is for the language of the program and for what was found.
func TestInspectAdvises(t *testing.T) {
	const set = "__thread void *custom_labels_current_set; int custom_labels_abi_version = 1; int main(void) "
	for name, tc := range map[string]struct {
		source          string
		language, about string
	}{
		"C":         {"int main(void)" + ready, "", outcomeNoSource},
		"Python":    {"int _PyRuntime; int main(void)" + ready, "python", outcomeNoSource},
		"Node.js":   {"int _ZN4node5StartEiPPc; int main(void)" + ready, "nodejs", outcomeNoSource},
		"Java":      {"int gHotSpotVMStructs; int main(void)" + ready, "java", outcomeNoSource},
		"none now":  {set + ready, "", outcomeNoLabels},
		"version 7": {strings.Replace(set, "= 1", "= 7", 1) + ready, "", labelsource.UnsupportedVersion.String()},
		"Node.js 7": {"__thread void *otel_thread_ctx_nodejs_v1; int _ZN4node5StartEiPPc; int main(void)" + ready, "nodejs", labelsource.UnsupportedSchema.String()},
	} {
		t.Run(name, func(t *testing.T) {
			pid := strconv.Itoa(started(t, compiled(t, "p", tc.source, "-rdynamic")))
			_, text, _ := inspected(t, "--json", pid)
			r := parseReport(t, text)
			require.Equal(t, tc.language, r.Language)
			require.Equal(t, []string{adviceOn(tc.about, language(tc.language))}, r.Advice)
			_, text, _ = inspected(t, pid)
			require.Contains(t, strings.Join(strings.Fields(text), " "), "to do: "+r.Advice[0])
		})
	}
	labelled := "static struct { unsigned long n; const char *s; } set[2] = { { 1, \"k\" }, { 1, \"v\" } }; static struct { void *l; unsigned long n; } all = { set, 1 };" +
		set + "{ custom_labels_current_set = &all; write(1, \"x\", 1); for (;;) pause(); }"
	code, text, _ := inspected(t, strconv.Itoa(started(t, compiled(t, "p", labelled, "-rdynamic"))))
	require.Zero(t, code)
	require.Contains(t, text, "k=v")
	require.NotContains(t, text, "to do:", "nothing")
}

// TestAdviceOnUnseenThreads: that no thread has labels is said only where all were looked at.
func TestAdviceOnUnseenThreads(t *testing.T) {
	none := threadReport{Readings: []readingReport{{Outcome: record.OutcomeNone.String()}}}
	stale := threadReport{Readings: []readingReport{{Outcome: record.OutcomeStaleModule.String()}}}
	hung := threadReport{Error: "it hangs"}
	for name, tc := range map[string]struct {
		of   processReport
		want []string
	}{
		"all":           {processReport{Threads: []threadReport{none, none}}, []string{adviceOn(outcomeNoLabels, anyLanguage)}},
		"one of two":    {processReport{Threads: []threadReport{hung, none}}, []string{adviceOn(outcomeNoLabels, anyLanguage)}},
		"left out":      {processReport{Threads: []threadReport{none}, ThreadsLeftOut: 99}, []string{"--threads 100 7."}},
		"all left out":  {processReport{ThreadsLeftOut: 5}, []string{"--threads 5 7."}},
		"too many":      {processReport{Threads: make([]threadReport, maxThreads), ThreadsLeftOut: 5}, []string{"check 7."}},
		"took too long": {processReport{Threads: []threadReport{none}, ThreadsLeftOut: 5, outOfTime: true}, []string{"check 7."}},
		"stale":         {processReport{Threads: []threadReport{none, stale}, ThreadsLeftOut: 1}, []string{"--threads 3 7.", adviceOn(record.OutcomeStaleModule.String(), anyLanguage)}},
		"none read":     {processReport{Threads: []threadReport{hung, hung}}, []string{"nothing is known of labels: it hangs."}},
		"none there":    {processReport{}, []string{"nothing is known of labels: they have ended."}},
	} {
		r := tc.of
		r.PID, r.Sources = 7, []sourceReport{{state: labelsource.Active}}
		r.advise()
		require.Len(t, r.Advice, len(tc.want), name)
		for i, want := range tc.want {
			require.Contains(t, r.Advice[i], want, name)
		}
	}
}

// buildInfo is that of a Go program with these modules.
func buildInfo(modules string) []byte {
	b := make([]byte, buildInfoHeaderBytes)
	copy(b, buildInfoMagic)
	for _, text := range []string{"go1.25.4", modules} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return b
}

// TestGoDestroyers: the bridge of an older dd-trace-go is named, with its version.
func TestGoDestroyers(t *testing.T) {
	for version, named := range map[string]bool{"v2.10.0": true, "v2.2.3": true, "v2.10.0-rc.6": true, "v2.12.0": false, "v2.13.1": false, "v3.0.0": false, "": false} {
		info := buildInfo("0123456789abcdef" + "path\tshop\nmod\tshop\t(devel)\t\ndep\tgithub.com/DataDog/dd-trace-go/v2/internal\tv2.1.0\th1:x\ndep\t" + ddTraceModule + "\t" + version + "\th1:y\n")
		var source strings.Builder
		source.WriteString("__attribute__((section(\".go.buildinfo\"), used)) unsigned char info[] = {")
		for _, c := range info {
			fmt.Fprintf(&source, "%d,", c)
		}
		source.WriteString("}; int main(void)" + ready)
		file, err := os.Open(compiled(t, "p", source.String()))
		require.NoError(t, err)
		defer file.Close()
		stat, err := file.Stat()
		require.NoError(t, err)
		e, err := elffile.New(file, stat.Size())
		require.NoError(t, err)
		got := goDestroyers(e)
		if named {
			require.Len(t, got, 1, version)
			require.Contains(t, got[0], "dd-trace-go "+version+": ")
		} else {
			require.Empty(t, got, version)
		}
	}
}

// TestNodeDestroyers: a Node.js without what carries contexts is named, and why it is without: its
// version, a flag that is missing, or one that turns that off, wherever it is given.
func TestNodeDestroyers(t *testing.T) {
	const on, off = "--experimental-async-context-frame", "--no-async-context-frame"
	const title = "shop: worker" // as process.title leaves it
	for name, tc := range map[string]struct {
		major, minor int // of V8
		args         []string
		env          string
		says         []string
	}{
		"off on the line":        {13, 6, []string{off}, "", []string{off, "the command line"}},
		"off in the environment": {13, 6, nil, "NODE_OPTIONS=--enable-source-maps " + off, []string{off, "NODE_OPTIONS"}},
		"24":                     {13, 6, []string{"--async-context-frame"}, "NODE_OPTIONS=--x", nil},
		"26":                     {14, 6, nil, "", nil},
		"22":                     {12, 4, nil, "", []string{"V8 12.4: Node.js 22 or 23", on}},
		"22, on":                 {12, 4, []string{on}, "", nil},
		"23, on":                 {12, 9, nil, "NODE_OPTIONS=--experimental_async_context_frame", nil},
		"20":                     {11, 3, []string{on}, "", []string{"V8 11.3: Node.js 21 or older", "Node.js 24"}},
		"22, on with a value":    {12, 4, []string{"-r", "./first.js", on, "app.js"}, "", nil},
		"22, on for the script":  {12, 4, []string{"--require=./first.js", "app.js", "-", on}, "", []string{"Node.js 22 or 23"}},
		"22, behind the end":     {12, 4, []string{"--inspect", "--", on}, "", []string{"Node.js 22 or 23"}},
		"22, with a title":       {12, 4, []string{title}, "", nil},
		"20, with a title":       {11, 3, []string{title}, "", []string{"Node.js 21 or older"}},
		"24, off, with a title":  {13, 6, []string{title}, "NODE_OPTIONS=" + off, []string{off, "NODE_OPTIONS"}},
		"unknown":                {0, 0, nil, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			source := "int _ZN4node5StartEiPPc; "
			if tc.major > 0 {
				source += fmt.Sprintf("int %s = %d, %s = %d; ", v8MajorSymbol, tc.major, v8MinorSymbol, tc.minor)
			}
			cmd := exec.Command(compiled(t, "p", source+"int main(void)"+ready, "-rdynamic"), tc.args...)
			if len(tc.args) == 1 && tc.args[0] == title {
				cmd.Args = tc.args
			}
			cmd.Env = []string{tc.env}
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			t.Cleanup(func() {
				cmd.Process.Kill()
				cmd.Wait()
			})
			_, err = out.Read(make([]byte, 1))
			require.NoError(t, err)
			_, text, _ := inspected(t, "--json", strconv.Itoa(cmd.Process.Pid))
			advice := parseReport(t, text).Advice
			require.Equal(t, adviceOn(outcomeNoSource, languageNode), advice[len(advice)-1])
			if tc.says == nil {
				require.Len(t, advice, 1)
				return
			}
			require.Len(t, advice, 2, "what nothing else helps without stands first")
			for _, says := range tc.says {
				require.Contains(t, advice[0], says)
			}
		})
	}
}

// TestAdviceWithLabels: where a Node.js has labels, it is not said that it can have none.
func TestAdviceWithLabels(t *testing.T) {
	labelled := []threadReport{{Readings: []readingReport{{Labels: []labelText{{"k", "v"}}}}}}
	for l, want := range map[language][]string{languageNode: nil, languageGo: {"lost"}} {
		r := processReport{language: l, destroyers: []string{"lost"}, Sources: []sourceReport{{state: labelsource.Active}}, Threads: labelled}
		r.advise()
		require.Equal(t, want, r.Advice)
	}
}

// TestAdviceBySource: what is to be done about a source depends on what it is, and not on what else the
// program is written in.
func TestAdviceBySource(t *testing.T) {
	version := labelsource.UnsupportedVersion
	for abi, l := range map[record.ABI]language{
		record.ABIV0: anyLanguage, record.ABIV1: anyLanguage, record.ABIThreadContext: anyLanguage,
		record.ABIThreadContextNodeJS: languageNode, record.ABIGo: languageGo,
	} {
		for _, program := range []language{languageGo, languageNode, anyLanguage} {
			r := processReport{language: program, Sources: []sourceReport{{State: version.String(), state: version, source: record.LabelSource{ABI: abi}}}}
			r.advise()
			require.Equal(t, []string{adviceOn(version.String(), l)}, r.Advice, "%v %s", abi, program)
		}
	}
}

func FuzzModuleVersion(f *testing.F) {
	f.Add(buildInfo("dep\t" + ddTraceModule + "\tv2.10.0\th1:y\n"))
	f.Add(buildInfo(""))
	f.Add(append(buildInfo("")[:buildInfoHeaderBytes], 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01))
	f.Fuzz(func(t *testing.T, data []byte) {
		version := moduleVersion(data, ddTraceModule)
		require.LessOrEqual(t, len(version), len(data))
		minor, ok := minorOfV2(version)
		require.True(t, ok || minor == 0)
	})
}
