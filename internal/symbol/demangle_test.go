package symbol

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A name that would take the demangler for ever stays as it is.
func TestNameWithoutEnd(t *testing.T) {
	name := "_ZcvT_I" + strings.Repeat("LZcvT_I", 100) + "Li0E" + strings.Repeat("EE", 100) + "E"
	done := make(chan string, 1)
	go func() { done <- (&demangler{}).name(name) }()
	select {
	case got := <-done:
		require.Equal(t, name, got)
	case <-time.After(10 * time.Second):
		t.Fatal("it takes too long")
	}
	require.Equal(t, "C::operator int()", (&demangler{}).name("_ZN1CcviEv"))
	require.Equal(t, "f(cv::A, cv::B, cv::C, cv::D)", (&demangler{}).name("_Z1fN2cv1AEN2cv1BEN2cv1CEN2cv1DE"), "a namespace")
}

// reference is how a name refers to what it has had, counted from 0.
func reference(i int) string {
	if i == 0 {
		return "S_"
	}
	return "S" + strings.ToUpper(strconv.FormatInt(int64(i-1), 36)) + "_"
}

// copied is a function of functions whose parameters are twice the one before.
func copied(n int) string {
	name := "_Z1fIiEvPT_"
	for i := range n {
		name += "F" + reference(i+2) + reference(i+2) + "E"
	}
	return name
}

// copiedClosures is the same of closures.
func copiedClosures(n int) string {
	name := "_Z1fNUlvE_1aE"
	for i := range n {
		name += "NUl" + reference(2*i) + reference(2*i) + "E_1aE"
	}
	return name
}

// A name of which the demangler would make more than any memory holds stays as it is, and after
// some of them those of the same file that are not short.
func TestNameOfCopies(t *testing.T) {
	long := "_Z1f" + strings.Repeat("1a", 2*cheapBytes)
	readable := ""
	for range 20 { // the clock may count what the thread has not done, and the race detector takes its time
		if readable = (&demangler{}).name(long); readable != long {
			break
		}
	}
	require.True(t, strings.HasPrefix(readable, "f(a, a, a"), readable)
	var d demangler
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range 100 {
			for _, name := range []string{copied(40 + n), copiedClosures(40 + n)} {
				if got := d.name(name); got != name {
					t.Errorf("%s is %s", name, got)
				}
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("it takes too long")
	}
	require.Equal(t, maxCostly, d.costly)
	require.Equal(t, long, d.name(long))
	require.Equal(t, "f(int)", d.name("_Z1fi"))
	require.NotEqual(t, copied(3), (&demangler{}).name(copied(3)))
}

// rustReference is a back reference of a Rust name.
func rustReference(at int) string {
	if at == 0 {
		return "B_"
	}
	const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	number := ""
	for at--; at > 0 || number == ""; at /= len(digits) {
		number = string(digits[at%len(digits)]) + number
	}
	return "B" + number + "_"
}

// followed is a Rust function whose type arguments are a crate without a name, long chains of references to it, and as
// many of these as there may be in a name.
func followed(chain, wide int) string {
	name := "INvC1a1f"
	add := func(of string) (at int) {
		at = len(name)
		name += of
		return at
	}
	last := add("C0")
	for range chain {
		last = add(rustReference(last))
	}
	for range 2 {
		last = add("T" + strings.Repeat(rustReference(last), wide) + "E")
	}
	return "_R" + name + "E"
}

// A Rust name whose references are followed for long stays as it is, though it stands for few bytes. Usual ones do not.
func TestNameOfReferences(t *testing.T) {
	const want = "a::f::<, , , , (, ), ((, ), (, ))>"
	require.Equal(t, want, (&demangler{}).name(followed(3, 2)))
	long := followed(200, 40)
	require.Less(t, len(long), 1<<10+200)
	var d demangler
	for range maxCostly + 1 {
		require.Equal(t, long, d.name(long))
	}
	require.Equal(t, maxCostly, d.costly)
	require.Equal(t, want, d.name(followed(3, 2)))
}
