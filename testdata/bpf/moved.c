/*
 * Moves code with mremap(), which the kernel tells nobody, over code that it has mapped
 * from its own file. Prints where that is mapped, its bytes, and an address to which
 * nothing has called, then burns CPU there; when SIGUSR1 comes, it moves other code to that
 * place, at whose instruction the stack has that address on top, and burns CPU in it.
 *   moved
 *   -> "PID START BYTES WRONG"
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES (64 << 10)

#if defined(__x86_64__)
static const unsigned char code[] = { 0x57, 0xeb, 0xfe }; /* push %rdi; 1: jmp 1b */
#else
static const unsigned code[] = { 0xf81f0fe0, 0x14000000 }; /* str x0, [sp, -16]!; 1: b 1b */
#endif

static volatile sig_atomic_t move;

static void on_signal(int signal)
{
	move = signal;
}

static void wrong(void)
{
	_exit(1);
}

int main(int argc, char **argv)
{
	int self = open("/proc/self/exe", O_RDONLY);
	char *text = mmap(NULL, BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, self, 0);
	char *other = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile unsigned long x = 0;

	(void)argc;
	(void)argv;
	memcpy(other, code, sizeof(code));
	if (text == MAP_FAILED || other == MAP_FAILED || mprotect(other, BYTES, PROT_READ | PROT_EXEC)) {
		perror("map code");
		return 1;
	}
	signal(SIGUSR1, on_signal);
	printf("%d %lu %d %lu\n", getpid(), (unsigned long)text, BYTES, (unsigned long)wrong + 4);
	fflush(stdout);
	while (!move)
		x++;
	if (mremap(other, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, text) != text) {
		perror("move code");
		return 1;
	}
	((void (*)(void *))text)((char *)wrong + 4);
	return 0;
}
