/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox tune: measures what suits this device, and saves it.
 *
 * It opens the device without a tuning file and measures what copying and registering
 * cost. With --server it also measures how many queue pairs are worth having. It prints
 * the results, and writes the best values to the tuning file that rbx_open() reads.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/tune/tune.h"

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

/* The two words of "taken=FABRIC DEVICE", and the rest as one text. */
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

static int save(struct rbx_context *ctx, const char *path, const struct tune_result *result)
{
	struct rbx_tuning tuning = {
		.size_bytes = sizeof(tuning),
		.break_even_bytes = result->break_even_bytes,
		.queue_pairs = result->queue_pairs,
	};

	if (!strcmp(tune_options.out, "none"))
		return CLI_EXIT_OK;
	if (rbx_tuning_save(ctx, tune_options.out, &tuning)) {
		cli_fail(&tune_command, "%s", rbx_last_error());
		return CLI_EXIT_FAILED;
	}
	/* Nothing else may be on stdout with the JSON. */
	fprintf(strcmp(tune_options.json, "-") ? stdout : stderr,
		"\nwrote %s%s\n", path,
		*tune_options.out ? "" : ", which later runs read");
	return CLI_EXIT_OK;
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

static int tune(struct rbx_context *ctx, const char *path)
{
	struct tune_result result = { 0 };
	int rc, saved;

	describe(ctx, &result);
	rc = tune_buffers(&tune_options, ctx, &result);
	if (!rc && *tune_options.server)
		rc = tune_qps(&tune_options, &result);
	if (cli_interrupted()) {
		cli_fail(&tune_command, "interrupted; nothing was written, and what was "
					"borrowed was given back");
		return CLI_EXIT_SIGNAL + cli_interrupted();
	}
	if (rc)
		return rc;
	rc = report(&result);
	saved = save(ctx, path, &result);
	return rc ? rc : saved;
}

int cli_tune(int argc, char **argv)
{
	char path[PATH_MAX] = "";
	struct rbx_context *ctx;
	int rc;

	rc = cli_parse(&tune_command, argc, argv);
	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	rc = tune_options_check();
	if (!rc)
		rc = cli_output_check(&tune_command, "json", tune_options.json);
	if (!rc && strcmp(tune_options.out, "none"))
		rc = tune_file_check(path);
	if (rc)
		return rc;
	strcpy(tune_options.library.tune_file, "none");
	if (rbx_open(&ctx, &tune_options.library))
		return cli_fail(&tune_command, "%s", rbx_last_error());
	cli_interrupt_catch(true);
	if (strcmp(tune_options.out, "none") && isatty(STDERR_FILENO))
		fprintf(stderr, "rdmabox tune: measures, then writes %s%s\n", path,
			*tune_options.out ? "" : ", which later runs read (--out none: nothing)");
	rc = tune(ctx, path);
	rbx_close(ctx);
	return rc;
}
