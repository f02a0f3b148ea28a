/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox volume import: a file, or standard input, into a volume from its beginning on.
 *
 * Zeros are written only where the volume has something else: a chunk of zeros is read
 * first, which costs nothing if its slab was never written. So a sparse file takes no more memory
 * of the servers than its data.
 *
 * A server that died when its part was written fails no request. So at the end each is asked
 * whether it still has the volume.
 *
 * After a signal or an error what is outstanding is waited for, and it is said how much was
 * written.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/volume/volume.h"

#define POLL_MS 100 /* then a signal is looked for */

static const struct cli_option options[] = {
	VOLUME_NAME,
	{ "file", "FILE|-", "what goes into the volume; - is standard input", cli_set_text,
	  volume_wanted.file, .max = sizeof(volume_wanted.file), .is_required = true,
	  .argument = CLI_ARGUMENT_FILE, .place = CLI_OPTION_OR_WORD,
	  .details = "It must not be longer than the volume. If it is shorter, the rest of the "
		     "volume stays as it is." },
	VOLUME_POOL("servers that have it, all of them"),
	VOLUME_TAKE_OVER,
	VOLUME_REACH,
};

struct import {
	struct volume_copy copy;
	int fd;
	uint64_t file_bytes; /* 0: not known before it was read */
	bool is_at_end;
};

/* What to call it in messages. */
static const char *source_name(void)
{
	return strcmp(volume_wanted.file, "-") ? volume_wanted.file : "standard input";
}

/* ---- The file ------------------------------------------------------------------------*/

/* Returns 0 or an exit code. */
static int open_file(struct import *import)
{
	bool is_stdin = !strcmp(volume_wanted.file, "-");
	struct stat status;
	off_t begin;

	import->fd = is_stdin ? STDIN_FILENO : open(volume_wanted.file, O_RDONLY | O_CLOEXEC);
	if (import->fd < 0 || fstat(import->fd, &status))
		return cli_fail(&volume_import_command, "cannot read %s: %s; nothing was written",
				source_name(), strerror(errno));
	if (S_ISDIR(status.st_mode))
		return cli_fail(&volume_import_command,
				"cannot read %s: it is a directory; give a file", source_name());
	begin = S_ISREG(status.st_mode) ? lseek(import->fd, 0, SEEK_CUR) : -1;
	if (begin >= 0 && begin < status.st_size)
		import->file_bytes = (uint64_t)(status.st_size - begin);
	return 0;
}

static void close_file(struct import *import)
{
	if (import->fd > STDIN_FILENO)
		close(import->fd);
}

/* Waits until there is something to read, or a signal came. */
static bool is_readable(int fd)
{
	struct pollfd in = { .fd = fd, .events = POLLIN };

	while (!cli_interrupted())
		if (poll(&in, 1, POLL_MS) > 0)
			return true;
	return false;
}

/* Fills the buffer, unless the file ends before. Returns the bytes, or -errno. */
static ssize_t read_chunk(struct import *import, uint8_t *buf)
{
	size_t have = 0;

	while (have < VOLUME_CHUNK_BYTES && !import->is_at_end) {
		ssize_t count;

		if (!is_readable(import->fd))
			return -EINTR;
		count = read(import->fd, buf + have, VOLUME_CHUNK_BYTES - have);
		if (count < 0 && errno != EINTR)
			return -errno;
		import->is_at_end = count == 0;
		have += count > 0 ? (size_t)count : 0;
	}
	return (ssize_t)have;
}

/* ---- The volume ----------------------------------------------------------------------*/

static bool is_zeros(const uint8_t *data, size_t bytes)
{
	return !data[0] && !memcmp(data, data + 1, bytes - 1);
}

/* Ends the oldest chunk; one of zeros that finds something else is written now. */
static int end_chunk(struct import *import)
{
	struct volume_slot *slot = volume_copy_wait(&import->copy);
	const struct rbx_request *request = &slot->request;
	int err = request->status;

	if (!err && request->op == RBX_READ && !is_zeros(slot->buf, request->length_bytes)) {
		memset(slot->buf, 0, request->length_bytes);
		err = rbx_write(import->copy.volume, slot->buf, request->length_bytes,
				request->offset);
	}
	if (!err)
		volume_copy_end(&import->copy);
	return err;
}

static int end_all(struct import *import)
{
	int err = 0;

	while (!err && import->copy.ended_chunks < import->copy.begun_chunks)
		err = end_chunk(import);
	return err;
}

/* Why it ended early. */
struct trouble {
	int volume_err;
	int file_err; /* -EINTR: a signal came */
	bool is_too_long; /* the file */
	bool has_no_sum;
	const char *servers; /* what is wrong with them; NULL: nothing */
};

static bool is_trouble(const struct trouble *trouble)
{
	return trouble->volume_err || trouble->file_err || trouble->is_too_long ||
	       trouble->has_no_sum || trouble->servers;
}

static void begin_chunk(struct import *import, struct trouble *trouble)
{
	struct volume_copy *copy = &import->copy;
	uint8_t *buf = volume_copy_next(copy)->buf;
	uint64_t room = rbx_volume_size(copy->volume) - copy->begun_bytes;
	ssize_t bytes = read_chunk(import, buf);

	if (bytes < 0)
		trouble->file_err = (int)bytes;
	if (bytes <= 0)
		return;
	trouble->is_too_long = (uint64_t)bytes > room;
	if (trouble->is_too_long)
		bytes = (ssize_t)room;
	if (!bytes)
		return;
	trouble->has_no_sum = !volume_copy_sum(copy, buf, (size_t)bytes);
	trouble->volume_err = volume_copy_begin(
		copy, is_zeros(buf, (size_t)bytes) ? RBX_READ : RBX_WRITE, (uint32_t)bytes);
}

/* What was written and is lost. With one replica it may be that nobody has noticed yet. NULL:
 * nothing. */
static const char *what_is_lost(const struct import *import)
{
	struct rbx_volume_status status;

	rbx_volume_status(import->copy.volume, &status);
	if (status.slabs_lost)
		return "too many servers were lost";
	return status.replicas > 1 ? NULL : volume_servers_check(import->copy.ctx);
}

static void copy_all(struct import *import, struct trouble *trouble)
{
	int err;

	while (!import->is_at_end && !is_trouble(trouble)) {
		if (volume_copy_is_full(&import->copy))
			trouble->volume_err = end_chunk(import);
		if (!trouble->volume_err)
			begin_chunk(import, trouble);
	}
	err = trouble->volume_err ? 0 : end_all(import);
	if (err)
		trouble->volume_err = err;
	volume_copy_drain(&import->copy);
	if (!is_trouble(trouble))
		trouble->servers = what_is_lost(import);
}

/* ---- What became of it ----------------------------------------------------------------*/

static void say_why(struct import *import, const struct trouble *trouble, char *why,
		    size_t why_bytes)
{
	char reason[512];

	if (trouble->volume_err)
		snprintf(why, why_bytes, "writing to volume %s failed: %s", volume_wanted.name,
			 volume_copy_reason(&import->copy, trouble->volume_err, reason,
					    sizeof(reason)));
	else if (trouble->file_err == -EINTR)
		snprintf(why, why_bytes, "interrupted");
	else if (trouble->file_err)
		snprintf(why, why_bytes, "cannot read %s: %s", source_name(),
			 strerror(-trouble->file_err));
	else if (trouble->is_too_long)
		snprintf(why, why_bytes, "%s is longer than the volume", source_name());
	else if (trouble->servers)
		snprintf(why, why_bytes, "not all that was written is there any more: %s",
			 trouble->servers);
	else
		snprintf(why, why_bytes, "SHA-256 fails");
}

static int tell_trouble(struct import *import, const struct trouble *trouble)
{
	const struct volume_copy *copy = &import->copy;
	uint64_t unknown = copy->begun_bytes - copy->ended_bytes;
	char why[PATH_MAX + 128], more[64] = "";

	say_why(import, trouble, why, sizeof(why));
	if (unknown)
		snprintf(more, sizeof(more), ", and any of the next %" PRIu64, unknown);
	cli_fail(&volume_import_command, "%s; the first %" PRIu64 " bytes were written%s", why,
		 copy->ended_bytes, more);
	return trouble->file_err == -EINTR && !trouble->volume_err ?
		       CLI_EXIT_SIGNAL + cli_interrupted() :
		       CLI_EXIT_FAILED;
}

static int run_import(struct import *import)
{
	struct trouble trouble = { 0 };
	uint64_t volume_bytes = rbx_volume_size(import->copy.volume);

	if (import->file_bytes > volume_bytes)
		return cli_fail(&volume_import_command,
				"%s has %" PRIu64 " bytes, and volume %s only %" PRIu64
				"; nothing was written", source_name(), import->file_bytes,
				volume_wanted.name, volume_bytes);
	volume_progress_begin(&import->copy.progress, "import", import->file_bytes);
	copy_all(import, &trouble);
	volume_progress_end(&import->copy.progress, import->copy.ended_bytes,
			    !is_trouble(&trouble));
	return is_trouble(&trouble) ? tell_trouble(import, &trouble) :
				      volume_copy_print_sum(&import->copy, stdout);
}

static int cli_import(int argc, char **argv)
{
	struct import import = { .fd = -1 };
	struct rbx_context *ctx;
	int rc;

	if (volume_parse(&volume_import_command, argc, argv, &rc))
		return rc;
	rc = open_file(&import);
	if (rc) {
		close_file(&import);
		return rc;
	}
	ctx = volume_device_open(&volume_import_command, &rc);
	if (ctx) {
		cli_interrupt_catch(false);
		rc = volume_copy_open(&import.copy, &volume_import_command, ctx);
		if (!rc)
			rc = run_import(&import);
		volume_copy_close(&import.copy);
	}
	close_file(&import);
	return rc;
}

const struct cli_command volume_import_command = {
	.name = "volume import",
	.purpose = "write a file into a volume",
	.notes = "Prints the SHA-256 of what was written, as sha256sum(1) does.",
	CLI_OPTIONS(options),
	.run = cli_import,
	.prepare = volume_prepare,
};
