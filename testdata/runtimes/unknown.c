/*
 * Says that it is a language runtime of a version or build that is not known, and burns CPU:
 * compiled with -D and one of V8, HOTSPOT, PYTHON_NEWER, PYTHON_OLDER, PYTHON_FREE_THREADED; or, with
 * PYTHON_DAMAGED, of one that is known, without what tells of it.
 */
#include <stdio.h>
#include <unistd.h>

#if defined(V8)

int _ZN2v88internal7Version6major_E = 99, _ZN2v88internal7Version6minor_E = 1;

#elif defined(HOTSPOT)

struct field {
	const char *type, *name;
	unsigned long long is_static, offset;
	void *address;
};
struct number {
	const char *name;
	unsigned long long value;
};
static int major = 26;
static struct field fields[] = { { "Abstract_VM_Version", "_vm_major_version", 1, 0, &major }, { 0 } };
static struct number none[1];

struct field *gHotSpotVMStructs = fields;
unsigned long long gHotSpotVMStructEntryArrayStride = sizeof(struct field), gHotSpotVMStructEntryTypeNameOffset = 0,
		   gHotSpotVMStructEntryFieldNameOffset = 8, gHotSpotVMStructEntryIsStaticOffset = 16,
		   gHotSpotVMStructEntryOffsetOffset = 24, gHotSpotVMStructEntryAddressOffset = 32;
struct number *gHotSpotVMTypes = none;
unsigned long long gHotSpotVMTypeEntryArrayStride = sizeof(struct number), gHotSpotVMTypeEntryTypeNameOffset = 0,
		   gHotSpotVMTypeEntrySizeOffset = 8;
struct number *gHotSpotVMIntConstants = none;
unsigned long long gHotSpotVMIntConstantEntryArrayStride = sizeof(struct number),
		   gHotSpotVMIntConstantEntryNameOffset = 0, gHotSpotVMIntConstantEntryValueOffset = 8;

#else /* CPython */

char PyCode_Type[8];
#if defined(PYTHON_NEWER)
const unsigned long Py_Version = 0x030f00f0;
char _PyRuntime[8];
#elif defined(PYTHON_DAMAGED)
const unsigned long Py_Version = 0x030d00f0;
char _PyRuntime[4096] = "x";
#elif defined(PYTHON_OLDER)
char _PyRuntime[8];
#elif defined(PYTHON_FREE_THREADED)
const unsigned long Py_Version = 0x030e00f0;
struct {
	char cookie[8];
	unsigned long long version, free_threaded, offsets[125];
} _PyRuntime = { "xdebugpy", 0x030e00f0, 1, { 0 } };
#else
#error "which runtime?"
#endif

#endif

volatile unsigned long turns;

int main(void)
{
	printf("ready %d\n", getpid());
	fflush(stdout);
	for (;;)
		turns++;
}
