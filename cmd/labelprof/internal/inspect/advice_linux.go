// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package inspect

import (
	"fmt"
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Outcomes that advice is about, besides the states of a label source and the outcomes of a read.
const (
	outcomeNoSource = "no_source" // the process has no label source
	outcomeNoLabels = "no_labels" // none of its threads has labels now
)

// advice is what to do about an outcome in a program of a language.
type advice struct {
	outcome  string
	language language // any: of those that have no line of their own
	text     string
}

// advices is what to do next, by outcome and language. Versions and flags are those that
// examples/publish, docs/limits.md and the specifications name.
func advices() []advice {
	const look = "Look again while it works on what it labels, or watch it for some seconds: labelprof check PID."
	return []advice{
		{outcomeNoSource, anyLanguage, "To publish labels from C, C++ or Rust, take examples/publish/c/labels.h, examples/publish/cpp or the crate in examples/publish/rust (custom labels v1), and link the executable with -Wl,--export-dynamic-symbol=custom_labels_current_set and the same for custom_labels_abi_version."},
		{outcomeNoSource, languageGo, "Build with Go 1.22 or newer and keep the section .go.buildinfo; labels are those of runtime/pprof, pprof.Do(ctx, pprof.Labels(\"tenant\", t), f), and nothing is to be linked."},
		{outcomeNoSource, languageNode, "Install @datadog/pprof 5.20 and @datadog/libdatadog-extras (examples/publish/nodejs), or run dd-trace with DD_TRACE_OTEL_CTX_ENABLED=true, on Node.js 24 or newer; Node.js 22 and 23 also need --experimental-async-context-frame, and 20 cannot."},
		{outcomeNoSource, languagePython, "Copy examples/publish/python/labels.py (CPython 3.8 or newer), or run ddtrace 4.13 or newer with DD_TRACE_OTEL_CTX_ENABLED=true."},
		{outcomeNoSource, languageJava, "Add examples/publish/java: labels/Labels.java with FfmNative.java and --enable-native-access=ALL-UNNAMED from Java 22 on, with JniNative.java on Java 8 to 21; java.io.tmpdir must allow code to be run from it."},

		{labelsource.NotRelocated.String(), anyLanguage, "Look again in a second: the dynamic loader is at work. If it stays so, the thread that loads the library is stopped or waits."},
		{labelsource.NoRelocation.String(), anyLanguage, "Build the library with -fPIC -ftls-model=global-dynamic (and -mtls-dialect=gnu2 on x86-64), with a reference to the variable in the file that defines it; or use glibc 2.34 or newer, or musl."},
		{labelsource.UnsupportedVersion.String(), anyLanguage, "Publish custom_labels_abi_version 1 with custom_labels_current_set, or 0 with custom_labels_thread_local_data: no other version of custom labels is known."},
		{labelsource.UnsupportedVersion.String(), languageGo, "Build with a release of Go from 1.22 to 1.27, or keep the debug information (no -ldflags=-w), of which the layout of any release can be taken."},
		{labelsource.UnsupportedVersion.String(), languageNode, "Run a Node.js of the releases 22 to 26, built without pointer compression: the layout of V8's heap is known for these."},
		{labelsource.UnsupportedSchema.String(), anyLanguage, "Publish a process context (OTEP 4719) whose threadlocal.schema_version is tls_v1, as the thread contexts are."},
		{labelsource.UnsupportedSchema.String(), languageNode, "Publish a process context whose threadlocal.schema_version is nodejs_v1: install @datadog/libdatadog-extras beside @datadog/pprof 5.20 (examples/publish/nodejs); dd-trace does it with DD_TRACE_OTEL_CTX_ENABLED=true."},
		{labelsource.UnsupportedModel.String(), anyLanguage, "Build what defines the variable with -fPIC -ftls-model=global-dynamic, or link it into the executable, for glibc or musl; of several variables of that name in one file keep one: link one copy of the library."},
		{labelsource.UnsupportedModel.String(), languageGo, "Keep .symtab (no -ldflags=-s, no strip): a stripped Go program with thread-local variables of C code does not tell where its goroutine is."},
		{labelsource.Undefined.String(), anyLanguage, "Link or preload the library that defines the variable: what is loaded only refers to it, weakly."},
		{labelsource.NotProgram.String(), anyLanguage, "Publish from the program that runs or from a shared library: an executable that is only mapped has no thread-local variables."},
		{labelsource.Unreadable.String(), anyLanguage, "Read the reason above; a damaged file is to be built again, and a file on a filesystem that does not answer is to be moved to one that does."},
		{labelsource.OverLimit.String(), anyLanguage, "Load fewer libraries that publish: 4 label sources of a process are read, the others are left out."},

		{outcomeNoLabels, anyLanguage, "No thread has labels at this moment: set them on the thread that works, with labels_swap of custom labels v1 or the SDK, since each thread has its own. " + look},
		{outcomeNoLabels, languageGo, "No goroutine that runs has labels: set them with pprof.Do of runtime/pprof in the goroutine that works, or before it is started; pprof.SetGoroutineLabels(context.Background()) takes them away. " + look},
		{outcomeNoLabels, languageNode, "No async context that runs has labels: Node.js 24 or newer keeps them (22 and 23 with --experimental-async-context-frame), dd-trace sets them with DD_TRACE_OTEL_CTX_ENABLED=true, examples/publish/nodejs/labels.js for the time of a callback. " + look},
		{outcomeNoLabels, languagePython, "No thread has labels at this moment: a scope of labels.py belongs to its thread, ends where its with block ends, and under asyncio is to end before an await; ddtrace 4.13 or newer needs DD_TRACE_OTEL_CTX_ENABLED=true. " + look},
		{outcomeNoLabels, languageJava, "No thread has labels at this moment: a scope of labels/Labels.java belongs to its platform thread, and virtual threads publish nothing; run what is to be labelled on platform threads. " + look},

		{record.OutcomeNotAllocated.String(), anyLanguage, "These threads have never set a label: set one on each thread that works, or link the library instead of loading it by dlopen. " + look},
		{record.OutcomeStaleModule.String(), anyLanguage, "These threads have set no label since the library was loaded: set one on each thread that works, or link the library instead of loading it by dlopen. " + look},
		{record.OutcomeUpdating.String(), anyLanguage, "Look again: the record was being changed. If valid stays 0, the writer of the thread context (OTEP 4947) never completes it: labelprof check PID says so."},
		{record.OutcomeInvalid.String(), anyLanguage, "Have the writer judged by the specification: labelprof check PID names the rule that is broken and what to do."},
		{record.OutcomeFault.String(), anyLanguage, "Have the writer judged by the specification: labelprof check PID names the rule; most often a set or a record is freed while it is published."},
		{record.OutcomeNoThreadPointer.String(), anyLanguage, "Look again: the thread has set up no thread-local storage yet, or was made without."},
	}
}

// adviceOn returns what to do about an outcome in a language, "" if there is nothing.
func adviceOn(outcome string, l language) string {
	text := ""
	for _, a := range advices() {
		if a.outcome == outcome && a.language == l {
			return a.text
		}
		if a.outcome == outcome && a.language == anyLanguage {
			text = a.text
		}
	}
	return text
}

// languageOf is that of the programs which publish by an ABI: a library of C in a Go program is none of Go.
func languageOf(abi record.ABI) language {
	switch abi {
	case record.ABIGo:
		return languageGo
	case record.ABIThreadContextNodeJS:
		return languageNode
	}
	return anyLanguage
}

// advise adds what to do about all that was found, each once: first what nothing else helps
// without.
func (r *processReport) advise() {
	if r.language != languageNode || !r.labelled() { // a Node.js that lacks what carries labels has none
		r.Advice = append(r.Advice, r.destroyers...)
	}
	add := func(outcome string, l language) {
		if text := adviceOn(outcome, l); text != "" && !slices.Contains(r.Advice, text) {
			r.Advice = append(r.Advice, text)
		}
	}
	switch {
	case r.err != nil:
	case len(r.Sources) == 0:
		remedies := r.remedies()
		r.Advice = append(r.Advice, remedies...)
		if len(remedies) == 0 {
			add(outcomeNoSource, r.language)
		}
	case !r.readable():
		for i := range r.Sources {
			add(r.Sources[i].State, languageOf(r.Sources[i].source.ABI))
		}
	case !r.labelled():
		outcomes, unseen := r.outcomes(), r.unseen()
		if unseen != "" {
			r.Advice = append(r.Advice, unseen)
		} else if len(outcomes) == 0 {
			outcomes = []string{outcomeNoLabels}
		}
		for _, outcome := range outcomes {
			add(outcome, r.language)
		}
	}
}

// unseen says that threads were not looked at, or none could be, and what to do about that; ""
// where what was seen is all that there is.
func (r *processReport) unseen() string {
	read, reason := false, "they have ended"
	for i := range r.Threads {
		if reported := r.Threads[i].Error; reported == "" {
			read = true
		} else {
			reason = reported
		}
	}
	total := len(r.Threads) + r.ThreadsLeftOut
	switch {
	case r.ThreadsLeftOut > 0 && (r.outOfTime || len(r.Threads) >= maxThreads):
		return fmt.Sprintf("None of the threads that were looked at has labels, and %d were left out: look again, or have those looked at that run: labelprof check %d.", r.ThreadsLeftOut, r.PID)
	case r.ThreadsLeftOut > 0:
		return fmt.Sprintf("None of the threads that were looked at has labels, and %d were left out: labelprof inspect --threads %d %d.", r.ThreadsLeftOut, min(total, maxThreads), r.PID)
	case !read:
		return fmt.Sprintf("No thread could be looked at, so nothing is known of labels: %s.", reason)
	}
	return ""
}

// labelled reports whether a thread has labels, or ids.
func (r *processReport) labelled() bool {
	for i := range r.Threads {
		for j := range r.Threads[i].Readings {
			if reading := &r.Threads[i].Readings[j]; len(reading.Labels) > 0 || reading.TraceID != "" {
				return true
			}
		}
	}
	return false
}

// outcomes are those of the threads, none of which has labels, but for that they have none now.
func (r *processReport) outcomes() (all []string) {
	for i := range r.Threads {
		for j := range r.Threads[i].Readings {
			outcome := r.Threads[i].Readings[j].Outcome
			if outcome != record.OutcomeNone.String() && outcome != record.OutcomePresent.String() && !slices.Contains(all, outcome) {
				all = append(all, outcome)
			}
		}
	}
	return all
}
