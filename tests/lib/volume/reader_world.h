/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reader_world.h - a named volume of three servers, the program that writes it, and one that reads
 * it beside that.
 */
#ifndef RBX_TESTS_LIB_READER_WORLD_H
#define RBX_TESTS_LIB_READER_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/rdmabox/named_volume.h"
#include "lib/volume/reader.h"
#include "tests/lib/volume/three_servers.h"

#define SLABS 5u
#define SLAB ((uint64_t)TENANT_SLAB_BYTES)
#define SIZE (SLABS * SLAB)

static struct rbx_context *ctx, *other;
static struct rbx_volume *writer, *reader;
static void (*on_removal)(struct rbx_volume *volume); /* or NULL */
static uint32_t removed_count; /* atomic */

static inline void note(struct rbx_volume *volume, const struct rbx_event *event, void *user)
{
	if (!user || event->kind != RBX_EVENT_STOPPED)
		return;
	__atomic_fetch_add(&removed_count, 1, __ATOMIC_RELAXED);
	if (on_removal)
		on_removal(volume);
}

static inline int open_as(struct rbx_context *in, struct rbx_volume **volume, uint32_t read_only,
			  uint32_t take_over)
{
	struct rbx_volume_options options;
	char *name;
	int err;

	rbx_volume_options_defaults(&options);
	options.name = name = strdup("db"); /* it is the program's after the open */
	options.read_only = read_only;
	options.take_over = take_over;
	options.event = note;
	options.user = read_only ? &removed_count : NULL; /* the writer is told as well */
	err = rbx_volume_open(in, volume, pool, 0, &options);
	free(name);
	return err;
}

static inline void begin_with(uint32_t replicas, uint32_t checksums)
{
	struct rbx_volume_create_options options;

	rbx_volume_create_options_defaults(&options);
	options.replicas = replicas;
	options.checksums = checksums;
	ctx = tenant_context("peer_timeout_ms=1000");
	other = tenant_context("peer_timeout_ms=1000");
	if (rbx_volume_create(ctx, pool, "db", SIZE, &options) ||
	    open_as(ctx, &writer, 0, 0) || open_as(other, &reader, 1, 0))
		fail_msg("%s", rbx_last_error());
}

static inline void finish(void)
{
	assert_int_equal(rbx_volume_close(reader), 0);
	assert_int_equal(rbx_volume_close(writer), 0);
	rbx_close(other);
	rbx_close(ctx);
}

static inline void put(uint64_t offset, uint64_t seed)
{
	uint8_t page[PAGE];

	tenant_fill(page, PAGE, seed);
	assert_int_equal(rbx_write(writer, page, PAGE, offset), 0);
}

static inline void put_all(uint64_t seed)
{
	for (uint64_t i = 0; i < SLABS; i++)
		put(i * SLAB + i * PAGE, seed + i);
}

/* What was acknowledged before counts from now on. */
static inline void lag(void)
{
	usleep(RBX_READ_ONLY_LAG_MS * 1000);
}

static inline void expect(uint64_t offset, uint64_t seed)
{
	uint8_t page[PAGE], expected[PAGE];

	tenant_fill(expected, PAGE, seed);
	if (rbx_read(reader, page, PAGE, offset))
		fail_msg("%s", rbx_last_error());
	assert_memory_equal(page, expected, PAGE);
}

static inline void expect_all(uint64_t seed)
{
	for (uint64_t i = 0; i < SLABS; i++)
		expect(i * SLAB + i * PAGE, seed + i);
}

/* The same as soon as the reader has heard of it: no later than lag() says. */
static inline void expect_all_soon(uint64_t seed)
{
	uint8_t page[PAGE], expected[PAGE];

	for (uint64_t i = 0; i < SLABS; i++) {
		tenant_fill(expected, PAGE, seed + i);
		do
			assert_int_equal(rbx_read(reader, page, PAGE, i * SLAB + i * PAGE), 0);
		while (memcmp(page, expected, PAGE) && !usleep(1000));
	}
}

#endif
