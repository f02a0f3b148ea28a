/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox volume export: a whole volume into a file, or to standard output.
 *
 * Chunks are read ahead, and written in their order (copy.c). After a signal or an error a
 * file is as it was before (output.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "cli/volume/volume.h"

#define PAGE_BYTES 4096u

static const struct cli_option options[] = {
	VOLUME_NAME,
	{ "file", "FILE|-", "where the volume goes; - is standard output", cli_set_text,
	  volume_wanted.file, .max = sizeof(volume_wanted.file), .is_required = true,
	  .argument = CLI_ARGUMENT_FILE, .place = CLI_OPTION_OR_WORD,
	  .details = "It is as long as the volume. While it is written it has the name "
		     "`FILE.part`." },
	VOLUME_POOL("servers that have it, all of them"),
	VOLUME_TAKE_OVER,
	VOLUME_READ_ONLY,
	VOLUME_REACH,
};

struct export {
	struct volume_copy copy;
	struct volume_output output;
	int volume_err;
	int file_err; /* -EINTR: a signal came */
};

static void begin_chunks(struct export *export)
{
	struct volume_copy *copy = &export->copy;
	uint64_t left = rbx_volume_size(copy->volume) - copy->begun_bytes;

	while (left && !export->volume_err && !volume_copy_is_full(copy)) {
		uint64_t bytes = left < VOLUME_CHUNK_BYTES ? left : VOLUME_CHUNK_BYTES;

		export->volume_err = volume_copy_begin(copy, RBX_READ, (uint32_t)bytes);
		left -= bytes;
	}
}

static void end_chunk(struct export *export)
{
	struct volume_slot *slot = volume_copy_wait(&export->copy);
	uint32_t bytes = slot->request.length_bytes;

	export->volume_err = slot->request.status;
	if (export->volume_err)
		return;
	if (!volume_copy_sum(&export->copy, slot->buf, bytes))
		export->file_err = -ENOMEM;
	else
		export->file_err = volume_output_write(&export->output, slot->buf, bytes);
	if (!export->file_err)
		volume_copy_end(&export->copy);
}

static void copy_all(struct export *export)
{
	uint64_t volume_bytes = rbx_volume_size(export->copy.volume);

	while (export->copy.ended_bytes < volume_bytes && !export->volume_err &&
	       !export->file_err) {
		begin_chunks(export);
		if (!export->volume_err)
			end_chunk(export);
	}
	volume_copy_drain(&export->copy);
}

/* Which page of the oldest chunk cannot be read: all before it are whole. Its first one, if all can
 * be by now. */
static uint64_t failed_at(struct export *export)
{
	struct volume_copy *copy = &export->copy;
	uint8_t *buf = volume_copy_next(copy)->buf;
	uint64_t begin = copy->ended_bytes, end = begin + VOLUME_CHUNK_BYTES, at;

	if (end > rbx_volume_size(copy->volume))
		end = rbx_volume_size(copy->volume);
	for (at = begin; at < end; at += PAGE_BYTES)
		if (rbx_read(copy->volume, buf, PAGE_BYTES, at))
			return at;
	return begin;
}

static void say_why_not_read(struct export *export, char *why, size_t why_bytes)
{
	struct volume_copy *copy = &export->copy;
	char reason[512];

	volume_copy_reason(copy, export->volume_err, reason, sizeof(reason));
	snprintf(why, why_bytes, "reading volume %s failed at byte %" PRIu64 ": %s%s",
		 volume_wanted.name, failed_at(export), reason,
		 volume_is_lost(copy->ctx) ?
			 "; slabs were lost with their servers: rdmabox volume clear-lost tells which" :
			 "");
}

/* Why it ended early. */
static void say_why(struct export *export, char *why, size_t why_bytes)
{
	bool is_stdout = !strcmp(volume_wanted.file, "-");

	if (export->volume_err)
		say_why_not_read(export, why, why_bytes);
	else if (export->file_err == -EINTR)
		snprintf(why, why_bytes, "interrupted");
	else
		snprintf(why, why_bytes, "cannot write %s: %s",
			 is_stdout ? "standard output" : volume_wanted.file,
			 strerror(-export->file_err));
}

static int tell_trouble(struct export *export)
{
	char why[PATH_MAX + 1024];

	say_why(export, why, sizeof(why));
	if (*export->output.part)
		cli_fail(&volume_export_command, "%s; no file was written", why);
	else
		cli_fail(&volume_export_command, "%s; the first %" PRIu64 " bytes were written", why,
			 export->copy.ended_bytes);
	return export->file_err == -EINTR ? CLI_EXIT_SIGNAL + cli_interrupted() :
					    CLI_EXIT_FAILED;
}

static int run_export(struct export *export)
{
	struct volume_copy *copy = &export->copy;

	bool is_whole;

	volume_progress_begin(&copy->progress, "export", rbx_volume_size(copy->volume));
	copy_all(export);
	if (!export->volume_err && !export->file_err)
		export->file_err = volume_output_keep(&export->output);
	is_whole = !export->volume_err && !export->file_err;
	volume_progress_end(&copy->progress, copy->ended_bytes, is_whole);
	if (!is_whole)
		return tell_trouble(export);
	return volume_copy_print_sum(copy, strcmp(volume_wanted.file, "-") ? stdout : stderr);
}

static int cli_export(int argc, char **argv)
{
	struct export export = { 0 };
	struct rbx_context *ctx;
	int rc;

	if (volume_parse(&volume_export_command, argc, argv, &rc))
		return rc;
	cli_interrupt_catch(false);
	/* A reader that goes away, and a file that becomes too large, are errors like others. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	rc = volume_output_open(&export.output, &volume_export_command, volume_wanted.file);
	if (rc)
		return rc;
	ctx = volume_device_open(&volume_export_command, &rc);
	if (ctx) {
		rc = volume_copy_open(&export.copy, &volume_export_command, ctx);
		if (!rc)
			rc = run_export(&export);
		volume_copy_close(&export.copy);
	}
	volume_output_drop(&export.output);
	return rc;
}

const struct cli_command volume_export_command = {
	.name = "volume export",
	.purpose = "write a volume into a file",
	.notes = "Prints the SHA-256 of what was written, as sha256sum(1) does; on standard error if\n"
		 "the volume goes to standard output.",
	CLI_OPTIONS(options),
	.run = cli_export,
	.prepare = volume_prepare,
};
