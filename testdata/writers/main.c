// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "burn.h"
#include "labels.h"
#include "load.h"
#include "modes.h"
#include "options.h"
#include "run.h"

static const struct mode {
	const char *name;
	void (*run)(void);
} modes[] = {
	{ "shares", mode_shares }, { "switch", mode_switch },	{ "fidelity", mode_fidelity },
	{ "spin", mode_spin },	   { "hostile", mode_hostile }, { "updates", mode_updates },
	{ "blocks", mode_blocks }, { "storm", mode_storm },	{ "brief", mode_brief },
	{ "churn", mode_churn },   { "turn", mode_turn },	{ "flood", mode_flood },
	{ "late", mode_late },
};

/* Of a short life nothing is spent before its work. */
static bool brief(void)
{
	return strcmp(options.mode, "brief") == 0 || strcmp(options.mode, "turn") == 0;
}

int main(int argc, char **argv)
{
	options_parse(argc, argv);
	run_begin(options.seconds);
	if (!brief())
		run_sleep_once();
	usleep((useconds_t)options.load_delay_ms * 1000);
	publisher = load_publisher();
	if (options.kind && strcmp(options.kind, "list") == 0) {
		hostile_list();
		return 0;
	}
	if (!brief())
		burn_calibrate();
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(modes[i].name, options.mode) == 0) {
			modes[i].run();
			return 0;
		}
	}
	fprintf(stderr, "%s: no such mode\n", options.mode);
	return 2;
}
