/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRITERS_OPTIONS_H
#define WRITERS_OPTIONS_H

#include <stdbool.h>

struct options {
	const char *mode;
	const char *kind; /* hostile */
	const char *truth;
	const char *log;
	const char *prefix;
	const char *pattern;
	double seconds;
	int threads;
	int dwell_us;
	int labels;
	int value_bytes;
	int load_delay_ms;
	int warmup_ms;
	int life_ms;
	int rate;
	int turn;
	bool last;
	bool in_place;
	bool print_variables;
	const char *service;
	bool no_process_context;
	bool fork;
};

extern struct options options;

/* Fills options; prints the usage and exits when they make no sense. */
void options_parse(int argc, char **argv);

#endif
