/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox volume scrub: reads all replicas of a volume, and repairs what is damaged.
 *
 * It goes from the beginning to the end, a chunk at a time, and tells where it was if it is
 * interrupted.
 */
#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "cli/volume/volume.h"

#define CHUNK_BYTES (1ull << 20)
#define PAGE_BYTES 4096u

static const struct cli_option options[] = {
	VOLUME_NAME,
	VOLUME_POOL("servers that have it, all of them"),
	{ "rate", "SIZE", "bytes of the volume in a second, at most; 0: no limit", cli_set_size,
	  &volume_wanted.rate_bytes, .max = 1ull << 46, .preset = "0",
	  .details = "Of each byte all replicas are read." },
	{ "from", "OFFSET", "where to begin, a multiple of 4096", cli_set_size,
	  &volume_wanted.from_bytes, .max = 1ull << 46, .preset = "0",
	  .details = "A scrub that was interrupted tells where to go on." },
	VOLUME_TAKE_OVER,
	VOLUME_REACH,
};

struct scrub {
	struct rbx_volume *volume;
	uint64_t at_bytes, end_bytes;
	uint64_t begun_ns;
	uint64_t lost_pages; /* that are damaged at all servers */
	int err;
	struct volume_progress progress;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Until so much may have been read. A signal ends it. */
static void keep_rate(const struct scrub *scrub)
{
	double due_s, left_s;
	struct timespec pause;

	if (!volume_wanted.rate_bytes)
		return;
	due_s = (double)(scrub->at_bytes - volume_wanted.from_bytes) /
		(double)volume_wanted.rate_bytes;
	left_s = due_s - (double)(now_ns() - scrub->begun_ns) / 1e9;
	if (left_s <= 0)
		return;
	pause = (struct timespec){ .tv_sec = (time_t)left_s,
				   .tv_nsec = (long)((left_s - (double)(time_t)left_s) * 1e9) };
	nanosleep(&pause, NULL);
}

/* Some page of the chunk is damaged: which ones? Neighbours are in one line. */
static void tell_lost(struct scrub *scrub, uint64_t bytes)
{
	uint64_t end_bytes = scrub->at_bytes + bytes, at, first = 0;
	bool is_lost, was_lost = false;

	for (at = scrub->at_bytes; at <= end_bytes; at += PAGE_BYTES) {
		is_lost = at < end_bytes &&
			  rbx_volume_scrub(scrub->volume, at, PAGE_BYTES) == -EIO;
		if (is_lost && !was_lost)
			first = at;
		if (was_lost && !is_lost)
			printf("damaged at all servers: bytes %" PRIu64 " to %" PRIu64 "\n",
			       first, at - 1);
		scrub->lost_pages += is_lost;
		was_lost = is_lost;
	}
}

static void scrub_chunk(struct scrub *scrub)
{
	uint64_t left = scrub->end_bytes - scrub->at_bytes;
	uint64_t bytes = left < CHUNK_BYTES ? left : CHUNK_BYTES;
	int err = rbx_volume_scrub(scrub->volume, scrub->at_bytes, bytes);

	if (err && err != -EIO) {
		scrub->err = err;
		return;
	}
	if (err)
		tell_lost(scrub, bytes);
	scrub->at_bytes += bytes;
	volume_progress_show(&scrub->progress, scrub->at_bytes);
	keep_rate(scrub);
}

static int tell(struct rbx_context *ctx, const struct scrub *scrub)
{
	const struct cli_command *command = &volume_scrub_command;
	struct rbx_stats stats;

	if (scrub->err == -EOPNOTSUPP)
		return cli_fail(command, "%s", rbx_last_error());
	rbx_stats_get(ctx, &stats);
	printf("%" PRIu64 " bytes: %" PRIu64 " damaged pages were repaired\n",
	       scrub->at_bytes - volume_wanted.from_bytes, stats.checksum_repairs);
	if (scrub->err) {
		cli_fail(command, "%s", rbx_last_error());
		return CLI_EXIT_FAILED;
	}
	if (scrub->at_bytes < scrub->end_bytes) {
		cli_fail(command, "interrupted; go on with --from %" PRIu64, scrub->at_bytes);
		return CLI_EXIT_SIGNAL + cli_interrupted();
	}
	return scrub->lost_pages ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

static int scrub_all(struct rbx_context *ctx, struct rbx_volume *volume)
{
	struct scrub scrub = {
		.volume = volume,
		.at_bytes = volume_wanted.from_bytes,
		.end_bytes = rbx_volume_size(volume),
		.begun_ns = now_ns(),
	};

	if (scrub.at_bytes > scrub.end_bytes || scrub.at_bytes % PAGE_BYTES)
		return cli_fail(&volume_scrub_command, "--from is no multiple of 4096 within the volume's %" PRIu64 " bytes",
				scrub.end_bytes);
	volume_progress_begin(&scrub.progress, "scrub", scrub.end_bytes);
	while (scrub.at_bytes < scrub.end_bytes && !scrub.err && !cli_interrupted())
		scrub_chunk(&scrub);
	volume_progress_end(&scrub.progress, scrub.at_bytes,
			    !scrub.err && scrub.at_bytes == scrub.end_bytes);
	return tell(ctx, &scrub);
}

static int scrub(int argc, char **argv)
{
	struct rbx_volume *volume;
	struct rbx_context *ctx;
	int rc = CLI_EXIT_OK;

	ctx = volume_begin(&volume_scrub_command, argc, argv, &rc);
	if (!ctx)
		return rc;
	cli_interrupt_catch(false);
	rc = volume_open(&volume_scrub_command, ctx, &volume, volume_event_show, NULL);
	if (!rc) {
		rc = scrub_all(ctx, volume);
		rbx_volume_close(volume);
	}
	rbx_close(ctx);
	return rc;
}

const struct cli_command volume_scrub_command = {
	.name = "volume scrub",
	.purpose = "read all replicas of a volume, and repair what is damaged",
	.notes = "Only of a volume with checksums, which no program has open. The exit code is 1 if a page is\n"
		 "damaged at all servers: it is an I/O error until it is written again.",
	CLI_OPTIONS(options),
	.run = scrub,
	.prepare = volume_prepare,
};
