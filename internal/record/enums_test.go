package record

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// headers returns the text of those that the BPF programs are compiled with.
func headers(t *testing.T) (text string) {
	t.Helper()
	for _, name := range []string{"record.h", "runtime.h"} {
		source, err := os.ReadFile("../bpf/src/" + name)
		require.NoError(t, err)
		text += string(source)
	}
	return text
}

// enumerators returns name (without prefix, lower case) -> value of one enum of the headers.
func enumerators(t *testing.T, prefix string) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, m := range regexp.MustCompile(prefix+`(\w+) = (\d+)`).FindAllStringSubmatch(headers(t), -1) {
		value, err := strconv.Atoi(m[2])
		require.NoError(t, err)
		found[strings.ToLower(m[1])] = value
	}
	return found
}

func TestOutcomesEqualTheHeader(t *testing.T) {
	want := enumerators(t, "OUTCOME_")
	require.Equal(t, NumOutcomes, want["max"])
	delete(want, "max")
	got := map[string]int{}
	for o := range Outcome(NumOutcomes) {
		got[o.String()] = int(o)
	}
	require.Equal(t, want, got)
	require.Equal(t, "unknown", Outcome(NumOutcomes).String())
}

func TestABIsEqualTheHeader(t *testing.T) {
	require.Equal(t, map[string]int{
		"none": int(ABINone), "v0": int(ABIV0), "v1": int(ABIV1), "thread_context": int(ABIThreadContext),
		"nodejs": int(ABIThreadContextNodeJS), "go": int(ABIGo),
	}, enumerators(t, "LABEL_ABI_"))
}

func TestABINames(t *testing.T) {
	for abi, want := range map[ABI][2]string{
		ABINone:                {"none", ""},
		ABIV0:                  {"custom_labels_v0", "custom_labels_thread_local_data"},
		ABIV1:                  {"custom_labels_v1", "custom_labels_current_set"},
		ABIThreadContext:       {"thread_context", "otel_thread_ctx_v1"},
		ABIThreadContextNodeJS: {"thread_context_nodejs", "otel_thread_ctx_nodejs_v1"},
		ABIGo:                  {"go_labels", ""},
		NumABIs:                {"unknown", ""},
		255:                    {"unknown", ""},
	} {
		require.Equal(t, want, [2]string{abi.String(), abi.Symbol()})
	}
}

func TestLayoutEqualsTheHeader(t *testing.T) {
	source := headers(t)
	for name, size := range map[string]int{"label_block": LabelBlockBytes, "raw_label": RawLabelBytes} {
		require.Contains(t, source, "_Static_assert(sizeof(struct "+name+") == "+strconv.Itoa(size)+",")
	}
}
