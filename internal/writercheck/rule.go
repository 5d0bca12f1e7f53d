package writercheck

// Format is a format in which programs publish, and the specification that has its rules.
type Format string

// The formats.
const (
	V0             Format = "custom_labels_v0"
	V1             Format = "custom_labels_v1"
	ThreadContext  Format = "thread_context"
	ProcessContext Format = "process_context"
	NodeJS         Format = "thread_context_nodejs"
	Go             Format = "go_labels"
)

// Rule is one thing that a specification asks of a writer.
type Rule struct {
	ID     string // stable: "format/name"
	Format Format
	// Advice tells that the specification recommends and does not require it.
	Advice bool
	// Moved tells that it is about objects that a garbage collector moves, whose threads go on
	// while one is stopped, or about a register that code of C may use: it is broken only if it often is (movedShare).
	Moved    bool
	Title    string // what holds when it holds
	Document string
	Section  string
	Remedy   string // what to do when it does not hold
}

// Documents.
const (
	documentV0   = "Custom Label ABI v0"
	documentV1   = "Custom Label ABI v1"
	otep4947     = "OTEP 4947"
	otep4719     = "OTEP 4719"
	documentNode = "nodejs_v1_dev, as @datadog/pprof publishes it"
	documentGo   = "runtime/pprof, read from goroutines"
	ownLimits    = "docs/resources.md of the custom_labels receiver"
	ownRules     = "docs/publishing.md of the custom_labels receiver"
)

// Rules returns the rules of all formats, in the order in which they are shown.
func Rules() []Rule {
	var all []Rule
	all = append(all, customLabels(V0, documentV0)...)
	all = append(all, customLabels(V1, documentV1)...)
	all = append(all, threadContext[:]...)
	all = append(all, nodeJS[:]...)
	all = append(all, goLabels[:]...)
	return append(all, processContext[:]...)
}

// Names of rules that several formats have.
const (
	ruleVersionExported = "version-exported"
	ruleVersionSize     = "version-size"
	ruleVersionValue    = "version-value"
	ruleExported        = "variable-exported"
	ruleThreadLocal     = "variable-thread-local"
	ruleSize            = "variable-size"
	ruleFileName        = "file-name"
	ruleLoaded          = "loaded-at-start"
	ruleModel           = "tls-model"
	ruleDescriptor      = "tls-descriptor"
	ruleSet             = "set-readable"
	ruleStorage         = "storage-readable"
	ruleSetAlignment    = "set-alignment"
	ruleKeys            = "keys-readable"
	ruleValues          = "values-readable"
	ruleValuesPresent   = "values-present"
	ruleUnique          = "keys-unique"
	ruleLimits          = "reader-limits"

	ruleRecord     = "record-readable"
	ruleAlignment  = "record-alignment"
	ruleRecordSize = "record-size"
	ruleValid      = "valid"
	ruleIDs        = "ids"
	ruleFlags      = "trace-flags"
	ruleAttributes = "attributes-complete"
	ruleText       = "attributes-utf8"
	ruleIndexes    = "key-map-complete"
	ruleOneWay     = "one-way-of-update"
	ruleSchema     = "schema"
	ruleSchemaName = "schema-released"

	ruleFound = "found"
)

func (f Format) rule(name string) string { return string(f) + "/" + name }

// customLabels are the rules of the custom labels ABIs, which differ by names and sizes.
func customLabels(f Format, document string) []Rule {
	variable, version, bytes, pattern := "custom_labels_current_set", "1", "8 (a pointer)", "`libcustomlabels.*\\.so$|customlabels\\.node$`"
	if f == V0 {
		variable, version, bytes, pattern = "custom_labels_thread_local_data", "0", "16 (storage and count)", "`libcustomlabels.*\\.so`"
	}
	const exposed, interpretation = "Exposed symbols", "Interpretation of data"
	rules := []Rule{
		{ID: ruleVersionExported, Title: "custom_labels_abi_version is a dynamic symbol", Section: "custom_labels_abi_version", Remedy: "visibility \"default\", and -rdynamic, --dynamic-list or --export-dynamic-symbol for an executable"},
		{ID: ruleVersionSize, Title: "custom_labels_abi_version has 4 bytes", Section: "custom_labels_abi_version", Remedy: "declare it as uint32_t"},
		{ID: ruleVersionValue, Title: "custom_labels_abi_version is " + version + " and stays so", Section: "custom_labels_abi_version", Remedy: "make it a constant with the version of the format that is published"},
		{ID: ruleExported, Title: variable + " is a dynamic symbol", Section: variable, Remedy: "visibility \"default\", and -rdynamic, --dynamic-list or --export-dynamic-symbol for an executable"},
		{ID: ruleThreadLocal, Title: variable + " is thread-local", Section: variable, Remedy: "declare it with __thread"},
		{ID: ruleSize, Title: variable + " has " + bytes + " bytes", Section: variable, Remedy: "declare it with the type of the specification"},
		{ID: ruleFileName, Title: "a library's file name matches " + pattern, Section: exposed, Remedy: "name the library so, also behind its links"},
		{ID: ruleLoaded, Title: "a library is there from the start", Section: exposed, Remedy: "link it or preload it rather than dlopen it; readers that ask for less are few"},
		{ID: ruleModel, Title: "an executable has it at a fixed offset, a library reaches it by a TLS descriptor", Section: variable, Remedy: "-fPIC -ftls-model=global-dynamic -mtls-dialect=gnu2 (desc on aarch64), and a reference in the library itself"},
		{ID: ruleSet, Title: "the label set can be read whenever a thread is stopped", Section: interpretation, Remedy: "complete a set before it is published, free it only after another one is"},
		{ID: ruleSetAlignment, Advice: true, Title: "set and labels are aligned as C lays them out", Section: interpretation, Remedy: "allocate them with malloc or as C objects"},
		{ID: ruleStorage, Title: "storage has as many labels as count says", Section: interpretation, Remedy: "complete a set before it is published, and free it only after another one is: a count beyond all reason is most often freed memory; count goes to 0 first where both change (v0)"},
		{ID: ruleKeys, Title: "a key's bytes can be read", Section: interpretation, Remedy: "free a key after the label is gone (key.buf NULL) or the set is replaced"},
		{ID: ruleValuesPresent, Title: "a label with a key has a value that is not NULL", Section: interpretation, Remedy: "set key.buf last when a label is added, and to NULL first when it is removed; an empty value has a buf"},
		{ID: ruleValues, Title: "a value's bytes can be read", Section: interpretation, Remedy: "free a value after the label is gone (key.buf NULL) or the set is replaced"},
		{ID: ruleUnique, Advice: true, Title: "a key comes once in a set", Document: ownRules, Section: "Rules for writers", Remedy: "leave out the labels of an outer scope whose keys are set again; of equal keys the first one counts"},
		{ID: ruleLimits, Advice: true, Title: "a set fits what readers copy: 64 labels, keys of 256 bytes, values of 1024, and 8,048 bytes in all, 12 of them for each label", Document: ownLimits, Section: "Limits", Remedy: "publish fewer or shorter labels; what is cut is marked in samples"},
	}
	for i := range rules {
		r := &rules[i]
		r.ID, r.Format = f.rule(r.ID), f
		if r.Document == "" {
			r.Document = document
		}
	}
	return rules
}
