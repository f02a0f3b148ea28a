/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options of rdmabox top.
 */
#include "cli/commands.h"
#include "cli/reach.h"
#include "cli/top/top.h"

struct top_options top_options = {
	.interval_s = 1,
	.sort_key = "name",
};

static const struct cli_option options[] = {
	{ "servers", "A:P,B:P", "memory servers to ask, at most 64", cli_set_text,
	  top_options.servers, .max = sizeof(top_options.servers),
	  .argument = CLI_ARGUMENT_ADDRESS,
	  .details = "Without it only volumes of this machine are shown." },
	{ "interval", "S", "seconds between two looks", cli_set_seconds,
	  &top_options.interval_s, .min = 0, .max = 3600, .unit = "s",
	  .details = "At least 0.1." },
	{ "once", NULL, "print one look, after one interval, and end", cli_set_flag,
	  .field = &top_options.once,
	  .details = "The exit code is 1 if a server is down." },
	{ "json", NULL, "print JSON, one line for each look", cli_set_flag,
	  .field = &top_options.as_json,
	  .details = "Each line is an object, with null for what is not known." },
	{ "sort", "KEY", "which rows come first: " TOP_SORT_KEYS, cli_set_word,
	  top_options.sort_key, .max = sizeof(top_options.sort_key),
	  .words = TOP_SORT_KEYS,
	  .details = "The largest number first; names by the alphabet." },
	{ "reverse", NULL, "reverse the order", cli_set_flag,
	  .field = &top_options.reversed },
	CLI_REACH_FABRIC(top_options.library, "how to reach the servers; as they serve"),
	CLI_REACH_SECRET(top_options.library, "the servers"),
	CLI_REACH_CREDENTIAL(top_options.library),
	CLI_REACH_INTEGRITY(top_options.library),
};

static void prepare(void)
{
	rbx_options_defaults(&top_options.library);
}

const struct cli_command top_command = {
	.name = "top",
	.purpose = "show memory servers and volumes again and again",
	.notes = "On a terminal: q quits, s sorts by the next column, r reverses, arrows scroll.",
	CLI_OPTIONS(options),
	.run = cli_top,
	.prepare = prepare,
};
