package procfs

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/customlabels/otelcol-customlabels/internal/testutil/fuzz"
)

// FuzzMappings reads whole files: what is accepted says the same when it is
// written anew.
func FuzzMappings(f *testing.F) {
	seeds := [][]byte{
		[]byte("7f0000000000-7f0000001000 r-xp 00002000 fe:01 1234                       /usr/lib/libc.so.6\n" +
			"7f0000001000-7f0000002000 rw-p 00003000 fe:01 1234                       /usr/lib/libc.so.6\n"),
		[]byte("1-2 ---p 0 0:0 1 \\012 (deleted)\n00400000-00401000 rw-p 00000000 00:00 0 \n"),
		[]byte("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]"),
	}
	var reader bytes.Reader
	var text []byte
	fuzz.Run(f, seeds, func(t testing.TB, data []byte) {
		reader.Reset(data)
		n := 0
		new(MappingReader).read(&reader, func(m Mapping, err error) bool {
			n++
			if err != nil {
				var format *FormatError
				if !errors.As(err, &format) {
					t.Fatal(err)
				}
				return true
			}
			if m.Limit <= m.Start || len(m.Path) > len(data) {
				t.Fatalf("%+v", m)
			}
			text = render(text[:0], m)
			again, err := parseMapping(text, false, m.Path)
			if err != nil || again != m {
				t.Fatalf("%+v, again %+v, %v", m, again, err)
			}
			return true
		})
		if n > bytes.Count(data, []byte("\n"))+1 {
			t.Fatalf("%d mappings in %d bytes", n, len(data))
		}
	})
}

// render writes a line as the kernel does.
func render(b []byte, m Mapping) []byte {
	number := func(v uint64, base int, end byte) { b = append(strconv.AppendUint(b, v, base), end) }
	number(m.Start, 16, '-')
	number(m.Limit, 16, ' ')
	for i, c := range []byte("rwx") {
		if m.Perms&(1<<i) == 0 {
			c = '-'
		}
		b = append(b, c)
	}
	shared := byte('p')
	if m.Perms&PermShared != 0 {
		shared = 's'
	}
	b = append(b, shared, ' ')
	number(m.Offset, 16, ' ')
	number(m.Dev>>8&0xfff|m.Dev>>32&^0xfff, 16, ':')
	number(m.Dev&0xff|m.Dev>>12&0xffffff00, 16, ' ')
	number(m.Inode, 10, ' ')
	b = append(b, strings.ReplaceAll(m.Path, "\n", `\012`)...)
	if m.Inode != 0 && strings.HasSuffix(m.Path, " (deleted)") { // it is a part of the name
		b = append(b, " (deleted)"...)
	}
	return b
}

// FuzzStat holds /proc/PID/stat against a reading from its end, where no command
// can be.
func FuzzStat(f *testing.F) {
	fuzz.Run(f, [][]byte{[]byte("42 (x)" + statTail), []byte("42 (a) R 1 (b" + statTail), []byte("2 ()" + statTail + " (")}, func(t testing.TB, data []byte) {
		st, err := parseStat(data)
		if err != nil {
			if st != (Stat{}) {
				t.Fatalf("%+v beside %v", st, err)
			}
			return
		}
		i := strings.LastIndex(string(data), ")")
		words := strings.FieldsFunc(string(data[i+1:]), func(r rune) bool { return r < 128 && isSpace(byte(r)) })
		ticks, err := strconv.ParseUint(words[19], 10, 64)
		if err != nil || st.StartTicks != ticks || string([]byte{st.State}) != words[0] || !strings.HasSuffix(string(data[:i]), "("+st.Comm) {
			t.Fatalf("%+v of %q", st, data)
		}
	})
}

// FuzzStatus: the uid and the PID are numbers that stand in the file.
func FuzzStatus(f *testing.F) {
	fuzz.Run(f, [][]byte{[]byte("Name:\tUid:\\n\nUid:\t1000\t0\t0\t0\nNSpid:\t4242\t17\t3\n"), []byte("Uid:\t4294967295\nGid:\t5\t6\t7\t8\nGroups:\t1 2\nNSpid:\t2147483647")}, func(t testing.TB, data []byte) {
		s, err := parseStatus(data)
		switch {
		case err != nil && !reflect.DeepEqual(s, Status{}):
			t.Fatalf("%+v beside %v", s, err)
		case err == nil && (!bytes.Contains(data, strconv.AppendUint(nil, uint64(s.UID), 10)) || s.NSPID < 0):
			t.Fatalf("%+v of %q", s, data)
		}
	})
}

// FuzzContainerID: an id is one part of a path, in hexadecimal.
func FuzzContainerID(f *testing.F) {
	id := strings.Repeat("0123456789abcdef", 4)
	seeds := [][]byte{
		[]byte("12:cpu,cpuacct:/docker/" + id + "\n0::/\n"),
		[]byte("0::/kubepods.slice/crio-conmon-" + id + ".scope\n1:x:/libpod-" + id + ".scope/container"),
		[]byte("0::/system.slice/kubepods-pod0a1b.slice:cri-containerd:" + id),
	}
	fuzz.Run(f, seeds, func(t testing.TB, data []byte) {
		if path := parseCgroupPath(string(data)); path != "" && (path[0] != '/' || strings.Contains(path, "\n") || !bytes.Contains(data, []byte("0::"+path))) {
			t.Fatalf("path %q", path)
		}
		got := parseContainerID(string(data))
		if got == "" {
			return
		}
		raw, err := hex.DecodeString(got)
		if err != nil || len(raw) != 32 || strings.ToLower(got) != got {
			t.Fatalf("%q", got)
		}
		for _, before := range [...]string{"/", "-", ":"} {
			if bytes.Contains(data, []byte(before+got)) {
				return
			}
		}
		t.Fatalf("%q is not a part of %q", got, data)
	})
}
