package writercheck

// Sections of OTEP 4947 and OTEP 4719.
const (
	sectionResolution = "Thread-Local Variable Resolution"
	sectionVariable   = "Thread-Local Variable"
	sectionRecord     = "Thread-Local Context Record"
	sectionAttachment = "Publication Protocol, 2. Context Attachment"
	sectionReference  = "Process Context: Thread-Local Reference Data"
	sectionKeyMap     = "attribute_key_map dictionary semantics"
	sectionGo         = "Alternative for Go support"

	sectionHeader      = "Header Structure"
	sectionPayload     = "Payload Format"
	sectionPublication = "Publication Protocol"
	sectionReading     = "Reading Protocol"
	sectionUpdating    = "Updating Protocol"
)

var threadContext = [...]Rule{
	{ID: "thread_context/" + ruleExported, Format: ThreadContext, Title: "otel_thread_ctx_v1 is a dynamic symbol", Document: otep4947, Section: sectionResolution, Remedy: "visibility \"default\", and --export-dynamic-symbol for an executable, also a static one"},
	{ID: "thread_context/" + ruleThreadLocal, Format: ThreadContext, Title: "otel_thread_ctx_v1 is thread-local", Document: otep4947, Section: sectionResolution, Remedy: "declare it with __thread"},
	{ID: "thread_context/" + ruleSize, Format: ThreadContext, Title: "otel_thread_ctx_v1 has 8 bytes (a pointer)", Document: otep4947, Section: sectionVariable, Remedy: "publish a pointer to the record, not the record"},
	{ID: "thread_context/" + ruleModel, Format: ThreadContext, Title: "a TLS descriptor, general dynamic or a static offset leads to it", Document: otep4947, Section: sectionResolution, Remedy: "refer to the variable by name in the file that defines it, with -ftls-model=global-dynamic; local dynamic is not supported"},
	{ID: "thread_context/" + ruleDescriptor, Format: ThreadContext, Advice: true, Title: "a library uses TLS descriptors", Document: otep4947, Section: sectionResolution, Remedy: "-mtls-dialect=gnu2 on x86-64, desc on aarch64"},
	{ID: "thread_context/" + ruleRecord, Format: ThreadContext, Title: "the record can be read whenever a thread is stopped", Document: otep4947, Section: sectionAttachment, Remedy: "free or reuse a record after the pointer is another or NULL"},
	{ID: "thread_context/" + ruleAlignment, Format: ThreadContext, Title: "the record starts at an even address", Document: otep4947, Section: sectionRecord, Remedy: "align records to 2 bytes at least"},
	{ID: "thread_context/" + ruleValid, Format: ThreadContext, Title: "valid is 1, or 0 while the record changes", Document: otep4947, Section: sectionRecord, Remedy: "write 1 and 0, nothing else; check the layout, it has no padding"},
	{ID: "thread_context/" + ruleIDs, Format: ThreadContext, Title: "trace id and span id are both set, or neither", Document: otep4947, Section: sectionRecord, Remedy: "write both, or zeros for both"},
	{ID: "thread_context/" + ruleFlags, Format: ThreadContext, Title: "trace flags are 0 where the ids are", Document: otep4947, Section: sectionRecord, Remedy: "clear the flags with the ids"},
	{ID: "thread_context/" + ruleAttributes, Format: ThreadContext, Title: "attrs-data-size is the size of whole entries", Document: otep4947, Section: sectionRecord, Remedy: "each entry is index, length, that many bytes; the size is their sum"},
	{ID: "thread_context/" + ruleText, Format: ThreadContext, Title: "attribute values are UTF-8", Document: otep4947, Section: sectionRecord, Remedy: "cut values between characters, publish no bytes"},
	{ID: "thread_context/" + ruleRecordSize, Format: ThreadContext, Advice: true, Title: "a record has 640 bytes at most", Document: otep4947, Section: sectionRecord, Remedy: "publish fewer or shorter attributes"},
	{ID: "thread_context/" + ruleIndexes, Format: ThreadContext, Title: "each key index that a record uses is in the key map", Document: otep4947, Section: sectionKeyMap, Remedy: "publish the process context with the new name before a record uses its index"},
	{ID: "thread_context/" + ruleOneWay, Format: ThreadContext, Advice: true, Title: "a thread changes the pointer or valid, not both", Document: otep4947, Section: sectionAttachment, Remedy: "keep one record a thread and toggle valid, or swap complete records"},
	{ID: "thread_context/" + ruleSchema, Format: ThreadContext, Title: "threadlocal.schema_version of the process context is tls_v1", Document: otep4947, Section: sectionReference, Remedy: "publish a process context with this attribute; readers do not look for the variable without"},
	{ID: "thread_context/" + ruleSchemaName, Format: ThreadContext, Advice: true, Title: "the schema is that of the released specification, not of a prototype", Document: otep4947, Section: sectionReference, Remedy: "tls_v1 rather than tlsdesc_v1_dev"},
	{ID: "thread_context/key-map", Format: ThreadContext, Title: "threadlocal.attribute_key_map has up to 256 names, no name twice", Document: otep4947, Section: sectionReference, Remedy: "an array of strings, one for each index, none empty"},
	{ID: "thread_context/key-map-append-only", Format: ThreadContext, Title: "names are appended to the key map, and never change or go", Document: otep4947, Section: sectionKeyMap, Remedy: "give a new name a new index"},
}

var nodeJS = [...]Rule{
	{ID: "thread_context_nodejs/" + ruleExported, Format: NodeJS, Title: "otel_thread_ctx_nodejs_v1 is a dynamic symbol", Document: documentNode, Section: "variable", Remedy: "visibility \"default\""},
	{ID: "thread_context_nodejs/" + ruleThreadLocal, Format: NodeJS, Title: "otel_thread_ctx_nodejs_v1 is thread-local", Document: documentNode, Section: "variable", Remedy: "declare it with __thread"},
	{ID: "thread_context_nodejs/" + ruleSize, Format: NodeJS, Title: "otel_thread_ctx_nodejs_v1 has 32 bytes", Document: documentNode, Section: "variable", Remedy: "slot, AsyncLocalStorage, hash and record offset, undefined"},
	{ID: "thread_context_nodejs/" + ruleModel, Format: NodeJS, Title: "a reader finds the variable", Document: otep4947, Section: sectionResolution, Remedy: "`labelprof inspect PID` says what it lacks: a Node.js that is not known, or the addon's way to its variable"},
	{ID: "thread_context_nodejs/" + ruleRecord, Format: NodeJS, Moved: true, Title: "the async context leads to a record", Document: documentNode, Section: "walk", Remedy: "Node.js 24 or newer, or --experimental-async-context-frame on 22 (not on 20 and before); publish undefined when a context ends"},
	{ID: "thread_context_nodejs/" + ruleIDs, Format: NodeJS, Title: "trace id and span id are both set, or neither", Document: otep4947, Section: sectionRecord, Remedy: "write both, or zeros for both"},
	{ID: "thread_context_nodejs/" + ruleFlags, Format: NodeJS, Title: "trace flags are 0 where the ids are", Document: otep4947, Section: sectionRecord, Remedy: "clear the flags with the ids"},
	{ID: "thread_context_nodejs/" + ruleAttributes, Format: NodeJS, Title: "attrs-data-size is the size of whole entries", Document: otep4947, Section: sectionRecord, Remedy: "each entry is index, length, that many bytes; the size is their sum"},
	{ID: "thread_context_nodejs/" + ruleText, Format: NodeJS, Title: "attribute values are UTF-8", Document: otep4947, Section: sectionRecord, Remedy: "cut values between characters, publish no bytes"},
	{ID: "thread_context_nodejs/" + ruleIndexes, Format: NodeJS, Title: "each key index that a record uses is in the key map", Document: otep4947, Section: sectionKeyMap, Remedy: "publish the process context with the new name before a record uses its index"},
	{ID: "thread_context_nodejs/" + ruleSchema, Format: NodeJS, Title: "threadlocal.schema_version of the process context is nodejs_v1 or nodejs_v1_dev", Document: documentNode, Section: "process context", Remedy: "publish a process context with this attribute, for dd-trace DD_TRACE_OTEL_CTX_ENABLED=true"},
}

var goLabels = [...]Rule{
	{ID: "go_labels/" + ruleFound, Format: Go, Title: "a reader finds the labels of goroutines", Document: documentGo, Section: "releases", Remedy: "Go 1.22 to 1.27, or a build with debug information; without cgo and with symbols where the place of the goroutine is not known"},
	{ID: "go_labels/" + ruleSet, Format: Go, Moved: true, Title: "the labels of a goroutine can be read whenever a thread is stopped", Document: documentGo, Section: "memory", Remedy: "set labels with runtime/pprof only"},
	{ID: "go_labels/" + ruleSchema, Format: Go, Title: "a process context, if there is one, has the schema go_pprof_labels_v1 and no key map", Document: otep4947, Section: sectionGo, Remedy: "publish go_pprof_labels_v1, or no threadlocal attributes"},
}

var processContext = [...]Rule{
	{ID: "process_context/mapping-name", Format: ProcessContext, Title: "the mapping is found by its name: /memfd:OTEL_CTX, [anon_shmem:OTEL_CTX] or [anon:OTEL_CTX]", Document: otep4719, Section: sectionReading, Remedy: "make it of a memfd named OTEL_CTX, or name it with prctl(PR_SET_VMA_ANON_NAME)"},
	{ID: "process_context/mapping-named", Format: ProcessContext, Title: "prctl(PR_SET_VMA_ANON_NAME) is called on the mapping", Document: otep4719, Section: sectionPublication + ", 10", Remedy: "call it after each publication, whatever it returns; readers may wait for the call"},
	{ID: "process_context/single", Format: ProcessContext, Advice: true, Title: "there is one process context", Document: otep4719, Section: sectionPublication, Remedy: "update the one that is there; several libraries share it"},
	{ID: "process_context/permissions", Format: ProcessContext, Title: "the mapping can be read and not run", Document: otep4719, Section: sectionPublication + ", 3", Remedy: "PROT_READ | PROT_WRITE"},
	{ID: "process_context/dont-fork", Format: ProcessContext, Title: "a child does not inherit it: MADV_DONTFORK", Document: otep4719, Section: sectionPublication + ", 5", Remedy: "madvise(address, length, MADV_DONTFORK)"},
	{ID: "process_context/signature", Format: ProcessContext, Title: "the signature is OTEL_CTX", Document: otep4719, Section: sectionHeader, Remedy: "8 bytes, without NUL, written last"},
	{ID: "process_context/version", Format: ProcessContext, Title: "the version is 2", Document: otep4719, Section: sectionHeader, Remedy: "2; 1 was for development"},
	{ID: "process_context/timestamp", Format: ProcessContext, Title: "the time of publication is not 0 but for moments", Document: otep4719, Section: sectionUpdating, Remedy: "write the time last, after payload and size"},
	{ID: "process_context/clock", Format: ProcessContext, Title: "the time of publication is one of CLOCK_BOOTTIME since the process began", Document: otep4719, Section: sectionHeader, Remedy: "clock_gettime(CLOCK_BOOTTIME) in nanoseconds"},
	{ID: "process_context/payload-readable", Format: ProcessContext, Title: "the payload can be read where the header says", Document: otep4719, Section: sectionHeader, Remedy: "keep the old payload until the header has the new one; an address of the process, a size in bytes"},
	{ID: "process_context/payload-size", Format: ProcessContext, Title: "the payload has 1 byte to 64 KiB", Document: ownLimits, Section: "Limits", Remedy: "publish fewer attributes"},
	{ID: "process_context/payload-decodes", Format: ProcessContext, Title: "the payload is a ProcessContext in protobuf", Document: otep4719, Section: sectionPayload, Remedy: "field 1: Resource, field 2: KeyValue, repeated"},
	{ID: "process_context/payload-fields", Format: ProcessContext, Title: "the payload has known fields only", Document: otep4719, Section: sectionPayload, Advice: true, Remedy: "field 1: Resource, field 2: KeyValue, repeated"},
	{ID: "process_context/update", Format: ProcessContext, Title: "header and payload change with the time only", Document: otep4719, Section: sectionUpdating, Remedy: "time to 0, barrier, payload and size, barrier, new time"},
	{ID: "process_context/resource-keys", Format: ProcessContext, Title: "resource attributes have a key and a value, no key twice", Document: otep4719, Section: sectionPayload, Remedy: "leave out what has no value"},
	{ID: "process_context/service-name", Format: ProcessContext, Advice: true, Title: "the resource has a service.name", Document: otep4719, Section: sectionPayload, Remedy: "publish the resource of the SDK"},
	{ID: "process_context/coordination", Format: ProcessContext, Title: "threadlocal attributes are in the attributes, not in the resource", Document: otep4947, Section: sectionReference, Remedy: "field 2 of the ProcessContext"},
}
