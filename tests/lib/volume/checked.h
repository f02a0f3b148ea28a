/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * checked.h - a volume with checksums on three servers, and what these have of it, for tests that
 * damage it.
 */
#ifndef RBX_TESTS_LIB_VOLUME_CHECKED_H
#define RBX_TESTS_LIB_VOLUME_CHECKED_H

#include <errno.h>
#include <string.h>

#include "include/rdmabox/named_volume.h"
#include "server/state.h"
#include "tests/lib/volume/three_servers.h"

#define SLABS 3
#define REPLICAS 2
#define SLAB ((uint64_t)TENANT_SLAB_BYTES)
#define SIZE (SLABS * SLAB)
#define PAGES ((uint32_t)(SIZE / PAGE))
#define PLACES 16u /* in all stripes of a slab, each with both parities */

static inline struct rbx_volume_create_options checked(void)
{
	struct rbx_volume_create_options options;

	rbx_volume_create_options_defaults(&options);
	options.replicas = REPLICAS;
	options.checksums = 1;
	return options;
}

static inline struct rbx_context *context_of_scrubbed(struct rbx_volume **volume,
						      uint64_t scrub_rate)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_options options;

	rbx_volume_options_defaults(&options);
	options.name = "db";
	options.take_over = 1;
	options.scrub_rate = scrub_rate;
	if (rbx_volume_open(ctx, volume, pool, 0, &options))
		fail_msg("%s", rbx_last_error());
	return ctx;
}

static inline struct rbx_context *context_of_volume(struct rbx_volume **volume)
{
	return context_of_scrubbed(volume, 0);
}

static inline void volume_make(void)
{
	struct rbx_volume_create_options options = checked();
	struct rbx_context *ctx = tenant_context("");

	assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE, &options), 0);
	rbx_close(ctx);
}

static inline void close_all(struct rbx_context *ctx, struct rbx_volume *volume)
{
	assert_int_equal(rbx_volume_close(volume), 0);
	rbx_close(ctx);
}

static inline void volume_remove(void)
{
	struct rbx_context *ctx = tenant_context("");

	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	rbx_close(ctx);
}

/* ---- What servers have ---------------------------------------------------------------*/

/* A server's copy of the slab of this offset; NULL: it has none. */
static inline uint8_t *slab_at(struct rbx_server *server, uint64_t offset)
{
	uint8_t *found = NULL;
	uint32_t i;

	pthread_mutex_lock(&server->lock);
	for (i = 0; i < RBX_LENT_SLABS_MAX && !found; i++)
		if (server->slabs[i].holder && server->slabs[i].map.label == 1 + offset / SLAB)
			found = server->workers.slabs[i].addr;
	pthread_mutex_unlock(&server->lock);
	return found;
}

/* The nth copy of a page. */
static inline uint8_t *copy_of(uint64_t offset, uint32_t nth)
{
	uint32_t i;

	for (i = 0; i < SERVERS; i++) {
		uint8_t *slab = slab_at(servers[i], offset);

		if (slab && !nth--)
			return slab + offset % SLAB;
	}
	fail_msg("there are fewer copies");
	return NULL;
}

/* A byte of it is damaged. The server's thread that has read it does not read it now, which a
 * thread sanitizer does not see. */
__attribute__((no_sanitize("thread"))) static inline void flip(uint64_t offset, uint32_t nth, uint32_t byte)
{
	copy_of(offset, nth)[byte] ^= 1;
}

/* The same of both copies, with nothing between that takes long: one that is good is not read, and
 * the other one repaired, meanwhile; or hardly ever. */
__attribute__((no_sanitize("thread"))) static inline void flip_both(uint64_t offset)
{
	uint8_t *one = copy_of(offset, 0), *other = copy_of(offset, 1);

	one[0] ^= 1;
	other[1] ^= 1;
}

/* The checksum that is kept with it. */
static inline uint32_t *checksum_of(uint64_t offset, uint32_t nth)
{
	uint8_t *slab = copy_of(offset / SLAB * SLAB, nth);

	return (uint32_t *)(slab + SLAB) + offset % SLAB / PAGE;
}

static inline void expect_equal_copies(uint64_t offset)
{
	assert_memory_equal(copy_of(offset, 0), copy_of(offset, 1), PAGE);
	assert_int_equal(*checksum_of(offset, 0), *checksum_of(offset, 1));
}

#endif
