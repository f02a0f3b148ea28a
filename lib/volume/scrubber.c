/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* scrubber.c - see scrubber.h. */
#include "lib/volume/scrubber.h"

#include <stdlib.h>

#include "client/keeper.h"
#include "lib/volume/scrub.h"
#include "lib/volume/volume.h"

#define SECOND_NS 1000000000ull

struct pass {
	uint64_t at_bytes;
	uint64_t left_bytes; /* 0: the next one begins */
	uint64_t bad_pages;
};

/* The rest of what was portioned out, or of the volume, which may have grown. */
static uint64_t portion_bytes(struct rbx_volume *volume, struct pass *pass)
{
	uint64_t size = rbx_volume_size(volume);

	if (pass->at_bytes >= size)
		pass->at_bytes = 0;
	if (!pass->left_bytes)
		*pass = (struct pass){ .at_bytes = pass->at_bytes, .left_bytes = size };
	return RBX_MIN(RBX_MIN(pass->left_bytes, size - pass->at_bytes),
		       (uint64_t)RBX_SCRUB_PORTION_BYTES);
}

/* The writer is shut out, or too few servers are there: what cannot be read is not damaged. */
static bool is_over(const struct rbx_volume *volume)
{
	return volume->control.keeper && rbx_keeper_is_over(volume->control.keeper);
}

/* Returns how many bytes are behind it: none if it could not be read, and is tried again. */
static uint64_t portion_scrub(struct rbx_scrubber *scrubber, struct pass *pass)
{
	uint64_t bytes = portion_bytes(scrubber->volume, pass);
	uint64_t bad_pages = 0;
	bool was_over = is_over(scrubber->volume);
	int err = rbx_scrub(scrubber->volume, pass->at_bytes, bytes, scrubber->buf, &bad_pages);

	if (err && (err != -EIO || was_over || is_over(scrubber->volume)))
		return 0;
	pass->bad_pages += bad_pages;
	pass->at_bytes += bytes;
	pass->left_bytes -= bytes;
	if (pass->left_bytes)
		return bytes;
	rbx_monitor_enter(&scrubber->monitor);
	scrubber->passes++;
	scrubber->bad_pages = pass->bad_pages;
	rbx_monitor_leave(&scrubber->monitor);
	return bytes;
}

/* False: it is to end. */
static bool rest(struct rbx_scrubber *scrubber, uint64_t until_ns)
{
	bool goes_on;

	rbx_monitor_enter(&scrubber->monitor);
	while (!scrubber->stop && rbx_now_ns() < until_ns)
		rbx_monitor_wait_until(&scrubber->monitor, until_ns);
	goes_on = !scrubber->stop;
	rbx_monitor_leave(&scrubber->monitor);
	return goes_on;
}

static void *scrubber_main(void *argument)
{
	struct rbx_scrubber *scrubber = argument;
	const uint64_t rate = scrubber->volume->options.scrub_rate;
	uint64_t bytes, next_ns = rbx_now_ns();
	struct pass pass = { .left_bytes = 0 };

	(void)rbx_random(&pass.at_bytes, sizeof(pass.at_bytes)); /* else it is 0 */
	pass.at_bytes %= rbx_volume_size(scrubber->volume);
	pass.at_bytes -= pass.at_bytes % RBX_SCRUB_PORTION_BYTES;
	do {
		bytes = portion_scrub(scrubber, &pass);
		next_ns += bytes ? bytes * SECOND_NS / rate : SECOND_NS;
		/* Who was late by more than a second does not make up for it. */
		if (next_ns + SECOND_NS < rbx_now_ns())
			next_ns = rbx_now_ns();
	} while (rest(scrubber, next_ns));
	return NULL;
}

int rbx_scrubber_rate_check(const struct rbx_volume *volume)
{
	const struct rbx_volume_options *options = &volume->options;

	if (!options->scrub_rate)
		return 0;
	if (options->scrub_rate < RBX_COPY_RATE_MIN)
		return rbx_error(-EINVAL, "scrub_rate=%llu: it must be 0, or at least %u bytes a second",
				 (unsigned long long)options->scrub_rate, RBX_COPY_RATE_MIN);
	if (!rbx_context_options(volume->ctx)->pollers)
		return rbx_error(-EINVAL, "scrub_rate: its thread needs one that polls, and pollers=0 has none");
	return 0;
}

int rbx_scrubber_volume_check(const struct rbx_volume *volume)
{
	if (!volume->options.scrub_rate || volume->options.checksums)
		return 0;
	return rbx_error(-EINVAL, "scrub_rate: the volume has no checksums: whether its replicas differ could be told, and not which one is right");
}

void rbx_scrubber_init(struct rbx_scrubber *scrubber)
{
	*scrubber = (struct rbx_scrubber){ .buf = NULL };
	rbx_monitor_init(&scrubber->monitor);
}

void rbx_scrubber_destroy(struct rbx_scrubber *scrubber)
{
	rbx_monitor_destroy(&scrubber->monitor);
}

int rbx_scrubber_start(struct rbx_scrubber *scrubber, struct rbx_volume *volume)
{
	int err;

	if (!volume->options.scrub_rate)
		return 0;
	scrubber->volume = volume;
	scrubber->buf = malloc(RBX_SCRUB_PORTION_BYTES);
	if (!scrubber->buf)
		return rbx_error(-ENOMEM, "out of memory");
	err = rbx_thread_start(&scrubber->thread, "scrub", scrubber_main, scrubber);
	if (!err)
		return 0;
	free(scrubber->buf);
	scrubber->buf = NULL;
	return rbx_error(err, "cannot start the thread that scrubs the volume");
}

void rbx_scrubber_stop(struct rbx_scrubber *scrubber)
{
	if (!scrubber->buf)
		return;
	rbx_monitor_enter(&scrubber->monitor);
	scrubber->stop = true;
	rbx_monitor_wake(&scrubber->monitor);
	rbx_monitor_leave(&scrubber->monitor);
	rbx_thread_join(&scrubber->thread);
	free(scrubber->buf);
	scrubber->buf = NULL;
}

void rbx_scrubber_get(struct rbx_scrubber *scrubber, uint64_t *passes, uint64_t *bad_pages)
{
	rbx_monitor_enter(&scrubber->monitor);
	*passes = scrubber->passes;
	*bad_pages = scrubber->bad_pages;
	rbx_monitor_leave(&scrubber->monitor);
}
