/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox tune: measures what this device likes, and remembers it.
 *
 * Opens the device without a tuning file, measures what copying and registering
 * cost, with --server how many queue pairs are worth having, prints it, and
 * writes what follows from it to the tuning file that rbx_open() reads.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/reach.h"
#include "cli/tune/tune.h"

static struct tune_options tune_options = {
	.rounds = 31,
	.runtime_s = 0.5,
};

static const struct cli_option options[] = {
	{ "server", "ADDR:PORT",
	  "a memory server: finds the number of queue pairs too",
	  cli_set_text, tune_options.server,
	  .max = sizeof(tune_options.server) },
	CLI_REACH_FABRIC(tune_options.library, "which kind of device"),
	CLI_REACH_DEVICE(tune_options.library),
	{ "json", "FILE|-", "write JSON; - prints it instead of the tables",
	  cli_set_text, tune_options.json, .max = sizeof(tune_options.json) },
	{ "out", "FILE|none",
	  "the tuning file, unless it is the default one;\n"
	  "none: write none",
	  cli_set_text, tune_options.out, .max = sizeof(tune_options.out) },
	{ "rounds", "N", "how often each length is tried", cli_set_number,
	  &tune_options.rounds, .min = 1, .max = RBX_BUFFER_COST_ROUNDS_MAX },
	{ "runtime", "S", "seconds of each run against the server",
	  cli_set_seconds, &tune_options.runtime_s, .min = 0, .max = 3600 },
	CLI_REACH_SECRET(tune_options.library, "the server"),
	{ "progress", NULL, "show progress even without a terminal",
	  cli_set_flag, .field = &tune_options.progress },
};

const struct cli_command tune_command = {
	.name = "tune",
	.purpose = "Measures what this device likes, and remembers it.",
	.usage = "[--server ADDR:PORT] [--fabric F] [--device D]\n"
		 "                    [--json FILE|-] [--out FILE|none] "
		 "[--rounds N] [--runtime S]\n"
		 "                    [--secret-file F | --insecure] [--progress]",
	.notes = "Writes to $XDG_CONFIG_HOME/rdmabox/tune.json or "
		 "~/.config/rdmabox/tune.json unless\n--out says otherwise; "
		 "later runs read it.",
	.options = options,
	.options_count = sizeof(options) / sizeof(options[0]),
};

void tune_progress(const struct tune_options *options, const char *format, ...)
{
	bool is_terminal = isatty(STDERR_FILENO);
	va_list args;

	if (!is_terminal && !options->progress)
		return;
	fputs(is_terminal ? "\r\033[K" : "", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs(is_terminal ? "" : "\n", stderr);
	fflush(stderr);
}

void tune_progress_end(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

/* The two words of "taken=FABRIC DEVICE", and the rest in whole. */
static void describe(struct rbx_context *ctx, struct tune_result *result)
{
	char taken[160];
	size_t fabric_len;

	cli_describe(ctx, "taken", taken, sizeof(taken));
	fabric_len = strcspn(taken, " ");
	snprintf(result->fabric, sizeof(result->fabric), "%.*s",
		 (int)fabric_len, taken);
	snprintf(result->device, sizeof(result->device), "%s",
		 taken[fabric_len] ? taken + fabric_len + 1 : "");
	cli_describe(ctx, "using", result->using, sizeof(result->using));
	cli_describe(ctx, "registering", result->registering,
		     sizeof(result->registering));
}

static int save(struct rbx_context *ctx, const struct tune_result *result)
{
	struct rbx_tuning tuning = {
		.size_bytes = sizeof(tuning),
		.break_even_bytes = result->break_even_bytes,
		.queue_pairs = result->queue_pairs,
	};

	if (!strcmp(tune_options.out, "none") ||
	    !rbx_tuning_save(ctx, tune_options.out, &tuning))
		return CLI_EXIT_OK;
	cli_fail(&tune_command, "%s", rbx_last_error());
	return CLI_EXIT_FAILED;
}

static int report(const struct tune_result *result)
{
	const char *json = tune_options.json;

	if (strcmp(json, "-"))
		tune_report_print(result);
	if (*json && cli_json_write(&tune_command, tune_report_json(result),
				    json))
		return CLI_EXIT_FAILED;
	return CLI_EXIT_OK;
}

static int tune(struct rbx_context *ctx)
{
	struct tune_result result = { 0 };
	int rc, saved;

	describe(ctx, &result);
	rc = tune_buffers(&tune_options, ctx, &result);
	if (!rc && *tune_options.server)
		rc = tune_qps(&tune_options, &result);
	if (rc)
		return rc;
	rc = report(&result);
	saved = save(ctx, &result);
	return rc ? rc : saved;
}

int cli_tune(int argc, char **argv)
{
	struct rbx_context *ctx;
	int rc;

	rbx_options_defaults(&tune_options.library);
	rc = cli_parse(&tune_command, argc, argv);
	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	if (tune_options.runtime_s <= 0)
		return cli_fail(&tune_command,
				"--runtime must be above 0; give seconds");
	rc = cli_reach_check(&tune_command, tune_options.library.secret_file,
			     tune_options.library.insecure);
	if (rc)
		return rc;
	strcpy(tune_options.library.tune_file, "none");
	if (rbx_open(&ctx, &tune_options.library))
		return cli_fail(&tune_command, "%s", rbx_last_error());
	rc = tune(ctx);
	rbx_close(ctx);
	return rc;
}
