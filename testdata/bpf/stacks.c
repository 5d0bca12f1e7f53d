/*
 * A thread whose stack, registers or unwind tables are not what they should be, or are
 * still those of the thread that has made it, for the tests of the BPF programs. Burns
 * CPU in a function of stacks_ARCH.S:
 *   stacks KIND
 *   -> "PID START"
 * START is where that function begins. What burns CPU may be a child.
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define KINDS(kind)                                                                                                    \
	kind(wild_sp) kind(kernel_sp) kind(far_cfa) kind(cfa_below) kind(cfa_stays) kind(kernel_caller)                \
		kind(calls_itself) kind(ends_in_call) kind(signal_loop) kind(fp_circle) kind(fp_unmapped)              \
			kind(fp_kernel) kind(fp_misaligned) kind(fp_below_sp) kind(thread) kind(thread_musl)           \
				kind(thread3) kind(spawned) kind(spawned3) kind(container) kind(forked) kind(forked3)  \
					kind(vforked) kind(vforked3)

#define DECLARE(name) void name(void);
KINDS(DECLARE)

static const struct {
	const char *name;
	void (*run)(void);
} kinds[] = {
#define ENTRY(name) { #name, name },
	KINDS(ENTRY)
};

int main(int argc, char **argv)
{
	/* Of children, too, which nothing else ends if the test does not. */
	struct rlimit seconds = { 120, 120 };

	setrlimit(RLIMIT_CPU, &seconds);
	for (size_t i = 0; argc == 2 && i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strcmp(argv[1], kinds[i].name))
			continue;
		printf("%d %lu\n", getpid(), (unsigned long)kinds[i].run);
		fflush(stdout);
		kinds[i].run();
	}
	return 2;
}
