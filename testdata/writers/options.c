// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS 1024
#define MAX_LABELS 100000
#define MAX_VALUE_BYTES (1 << 20)

struct options options = {
	.prefix = "",
	.pattern = "random",
	.seconds = 10,
	.threads = 1,
	.dwell_us = 1000,
	.labels = 1,
	.value_bytes = 16,
	.service = "writer",
	.warmup_ms = 3000,
	.life_ms = 50,
	.rate = 500,
};

static void usage(const char *problem)
{
	if (problem)
		fprintf(stderr, "%s\n", problem);
	fputs("usage: writer MODE [--seconds S] [--load-delay-ms N] [--print-variables]\n"
	      "              [--service NAME] [--no-process-context] ...\n"
	      "  shares   [--threads N] [--truth FILE] [--uid-prefix NAME]\n"
	      "  switch   --log FILE [--pattern random|30,90] [--dwell-us N] [--in-place]\n"
	      "  fidelity [--threads N] [--in-place] [--log FILE]\n"
	      "  spin     [--threads N] [--labels N] [--value-bytes B]\n"
	      "  updates  --log FILE [--dwell-us N] [--in-place] [--fork]\n"
	      "  blocks   [--truth FILE] [--warmup-ms N] [--in-place]\n"
	      "  late     [--warmup-ms N]\n"
	      "  storm    [--threads N]\n"
	      "  flood    [--threads N] [--labels N] [--value-bytes B] [--log FILE]\n"
	      "  brief    [--life-ms N]\n"
	      "  churn    [--rate N]\n"
	      "  turn     [--turn N] [--last]\n"
	      "  hostile  list|all|KIND\n",
	      stderr);
	exit(2);
}

static int number(const char *text, int low, int high)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (*text == '\0' || *end != '\0' || n < low || n > high)
		usage("a number is out of its range");
	return (int)n;
}

static double seconds(const char *text)
{
	char *end;
	double s = strtod(text, &end);

	if (*text == '\0' || *end != '\0' || !(s > 0 && s <= 86400))
		usage("--seconds: more than 0, at most 86400");
	return s;
}

/* It goes into a JSON file as it is. */
static const char *plain_name(const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	if (text[strspn(text, plain)] != '\0' || strlen(text) > 32)
		usage("a name has at most 32 letters, digits, '.', '_' and '-'");
	return text;
}

enum option_id {
	OPT_SECONDS,
	OPT_THREADS,
	OPT_TRUTH,
	OPT_PREFIX,
	OPT_LOG,
	OPT_PATTERN,
	OPT_DWELL,
	OPT_LABELS,
	OPT_VALUE,
	OPT_IN_PLACE,
	OPT_DELAY,
	OPT_PRINT,
	OPT_SERVICE,
	OPT_NO_CONTEXT,
	OPT_FORK,
	OPT_WARMUP,
	OPT_LIFE,
	OPT_RATE,
	OPT_TURN,
	OPT_LAST,
};

static const struct option table[] = {
	{ "seconds", required_argument, NULL, OPT_SECONDS },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "truth", required_argument, NULL, OPT_TRUTH },
	{ "uid-prefix", required_argument, NULL, OPT_PREFIX },
	{ "log", required_argument, NULL, OPT_LOG },
	{ "pattern", required_argument, NULL, OPT_PATTERN },
	{ "dwell-us", required_argument, NULL, OPT_DWELL },
	{ "labels", required_argument, NULL, OPT_LABELS },
	{ "value-bytes", required_argument, NULL, OPT_VALUE },
	{ "in-place", no_argument, NULL, OPT_IN_PLACE },
	{ "load-delay-ms", required_argument, NULL, OPT_DELAY },
	{ "print-variables", no_argument, NULL, OPT_PRINT },
	{ "service", required_argument, NULL, OPT_SERVICE },
	{ "no-process-context", no_argument, NULL, OPT_NO_CONTEXT },
	{ "warmup-ms", required_argument, NULL, OPT_WARMUP },
	{ "life-ms", required_argument, NULL, OPT_LIFE },
	{ "rate", required_argument, NULL, OPT_RATE },
	{ "turn", required_argument, NULL, OPT_TURN },
	{ "last", no_argument, NULL, OPT_LAST },
	{ "fork", no_argument, NULL, OPT_FORK },
	{ NULL, 0, NULL, 0 },
};

static void set(int option)
{
	switch (option) {
	case OPT_SECONDS:
		options.seconds = seconds(optarg);
		break;
	case OPT_THREADS:
		options.threads = number(optarg, 1, MAX_THREADS);
		break;
	case OPT_TRUTH:
		options.truth = optarg;
		break;
	case OPT_PREFIX:
		options.prefix = plain_name(optarg);
		break;
	case OPT_LOG:
		options.log = optarg;
		break;
	case OPT_PATTERN:
		options.pattern = optarg;
		break;
	case OPT_DWELL:
		options.dwell_us = number(optarg, 10, 10000000);
		break;
	case OPT_LABELS:
		options.labels = number(optarg, 0, MAX_LABELS);
		break;
	case OPT_VALUE:
		options.value_bytes = number(optarg, 0, MAX_VALUE_BYTES);
		break;
	case OPT_IN_PLACE:
		options.in_place = true;
		break;
	case OPT_DELAY:
		options.load_delay_ms = number(optarg, 0, 60000);
		break;
	case OPT_PRINT:
		options.print_variables = true;
		break;
	case OPT_SERVICE:
		options.service = plain_name(optarg);
		break;
	case OPT_NO_CONTEXT:
		options.no_process_context = true;
		break;
	case OPT_WARMUP:
		options.warmup_ms = number(optarg, 0, 60000);
		break;
	case OPT_LIFE:
		options.life_ms = number(optarg, 1, 60000);
		break;
	case OPT_RATE:
		options.rate = number(optarg, 1, 100000);
		break;
	case OPT_TURN:
		options.turn = number(optarg, 0, INT_MAX);
		break;
	case OPT_LAST:
		options.last = true;
		break;
	case OPT_FORK:
		options.fork = true;
		break;
	default:
		usage(NULL);
	}
}

void options_parse(int argc, char **argv)
{
	int option;

	while ((option = getopt_long(argc, argv, "", table, NULL)) != -1)
		set(option);
	if (optind == argc)
		usage("a mode is missing");
	options.mode = argv[optind++];
	if (strcmp(options.mode, "hostile") == 0) {
		if (optind == argc)
			usage("hostile: which kind?");
		options.kind = argv[optind++];
	}
	if (optind != argc)
		usage("too many arguments");
	if (strcmp(options.mode, "updates") == 0 && !options.log)
		usage("updates: --log is missing");
	if (strcmp(options.mode, "switch") == 0) {
		if (!options.log)
			usage("switch: --log is missing");
		if (strcmp(options.pattern, "random") != 0 && strcmp(options.pattern, "30,90") != 0)
			usage("--pattern: random or 30,90");
	}
}
