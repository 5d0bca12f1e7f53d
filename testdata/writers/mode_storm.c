// SPDX-License-Identifier: Apache-2.0
/* Pairs of threads that pass a byte to and fro through pipes: as many switches as there can be. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "labels.h"
#include "memory.h"
#include "modes.h"
#include "options.h"
#include "run.h"

struct pipe_ends {
	int out, in;
};

/* By pair: the pipe that each of its two threads reads from. */
static struct pipe_ends (*ends)[2];

static void body(int index)
{
	struct label label = { "side", index % 2 ? "pong" : "ping" };
	struct label_set set = { .count = 1, .labels = &label };
	struct pipe_ends *pair = ends[index / 2];
	int side = index % 2;
	char byte = 0;

	labels_swap(&set, false);
	run_published();
	if (side == 0 && write(pair[1].in, &byte, 1) != 1)
		perror("write to a pipe");
	while (read(pair[side].out, &byte, 1) == 1 && !run_over()) {
		if (write(pair[!side].in, &byte, 1) != 1)
			break;
	}
	close(pair[!side].in); /* ends the other side */
	labels_clear();
}

void mode_storm(void)
{
	int count = options.threads / 2 * 2;

	ends = must_malloc((size_t)(count / 2 + 1) * sizeof(*ends));
	for (int i = 0; i < count; i++) {
		int fds[2];

		if (pipe(fds) != 0) {
			perror("make a pipe");
			exit(1);
		}
		ends[i / 2][i % 2] = (struct pipe_ends){ .out = fds[0], .in = fds[1] };
	}
	run_threads(count, body, NULL);
}
