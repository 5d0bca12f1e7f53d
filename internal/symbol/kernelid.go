package symbol

import (
	"io"
	"os"
	"strings"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// maxKernelNotes bounds the notes of the kernel or of a module.
const maxKernelNotes = 64 << 10

// KernelBuildID returns the GNU build id of a module, or with "" that of the kernel
// itself; "" if there is none, as for BPF programs. sys is where sysfs is mounted.
func KernelBuildID(sys, module string) string {
	path := sys + "/kernel/notes"
	if module != "" {
		if strings.ContainsAny(module, "/.") {
			return ""
		}
		path = sys + "/module/" + module + "/notes/.note.gnu.build-id"
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	notes, err := io.ReadAll(io.LimitReader(f, maxKernelNotes))
	if err != nil {
		return ""
	}
	return elffile.NotesBuildID(notes)
}
