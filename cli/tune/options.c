/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options of rdmabox tune, and the checks between them.
 */
#include "cli/reach.h"
#include "cli/tune/tune.h"

struct tune_options tune_options = {
	.rounds = 31,
	.runtime_s = 0.5,
};

static const struct cli_option options[] = {
	{ "server", "ADDR:PORT", "a memory server: measure queue pairs too",
	  cli_set_text, tune_options.server, .max = sizeof(tune_options.server),
	  .argument = CLI_ARGUMENT_ADDRESS,
	  .details = "A server of rdmabox-serve(1). Without it the tuning file keeps the "
		     "number of queue pairs that it had." },
	{ "rounds", "N", "how often each length is tried", cli_set_number,
	  &tune_options.rounds, .min = 1, .max = RBX_BUFFER_COST_ROUNDS_MAX },
	{ "runtime", "S", "length of each run against the server",
	  cli_set_seconds, &tune_options.runtime_s, .min = 0, .max = 3600,
	  .unit = "s" },
	{ "out", "FILE|none", "tuning file to write\n"
	  "none: write none",
	  cli_set_text, tune_options.out, .max = sizeof(tune_options.out),
	  .group = "Output", .argument = CLI_ARGUMENT_FILE, .words = "none",
	  .preset = "~/.config/rdmabox/tune.json",
	  .details = "The default file is below $XDG_CONFIG_HOME if that is set. A file "
		     "that is something else is never overwritten." },
	{ "json", "FILE|-", "write JSON; - prints it instead of the tables",
	  cli_set_text, tune_options.json, .max = sizeof(tune_options.json),
	  .argument = CLI_ARGUMENT_FILE },
	{ "progress", NULL, "show progress even without a terminal",
	  cli_set_flag, .field = &tune_options.progress },
	CLI_REACH_FABRIC(tune_options.library, "kind of device"),
	CLI_REACH_DEVICE(tune_options.library),
	CLI_REACH_SECRET(tune_options.library, "the server"),
	CLI_REACH_CREDENTIAL(tune_options.library),
	CLI_REACH_INTEGRITY(tune_options.library),
};

static void prepare(void)
{
	rbx_options_defaults(&tune_options.library);
}

const struct cli_command tune_command = {
	.name = "tune",
	.purpose = "measure what this device likes, and remember it",
	.notes = "Later runs of any command read the tuning file.",
	CLI_OPTIONS(options),
	.run = cli_tune,
	.prepare = prepare,
};

int tune_options_check(void)
{
	if (tune_options.runtime_s <= 0)
		return cli_fail(&tune_command,
				"--runtime must be above 0; give seconds");
	return cli_reach_check(&tune_command, tune_options.library.secret_file,
			       tune_options.library.insecure);
}
