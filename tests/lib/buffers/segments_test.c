/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * segments_test.c - requests whose memory is a list, to real servers: random lists at
 * random places against a model, with each way that a device gets at memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/random.h"
#include "lib/volume/volume.h"
#include "tests/lib/registering.h"
#include "tests/lib/server_process.h"

#define PAGE 4096u
#define VOLUME_BYTES (2 * TENANT_SLAB_BYTES)
#define ARENA_BYTES (2u << 20)
#define BATCH 4u
#define REQUEST_BYTES (ARENA_BYTES / BATCH / 2)

/* Where lists are made: a request has a quarter of the arena, twice as long as it. */
struct arena {
	struct rbx_random random;
	uint8_t *memory;
	struct rbx_region *region; /* NULL: none */
	bool in_pages; /* whole pages, as a volume with checksums wants them */
	struct rbx_segment segments[BATCH][RBX_SEGMENTS_MAX];
	struct rbx_request requests[BATCH];
	uint8_t *model; /* of what is at the servers */
	uint64_t model_bytes;
};

static void arena_make(struct arena *arena, uint64_t model_bytes, uint64_t seed)
{
	memset(arena, 0, sizeof(*arena));
	rbx_random_seed(&arena->random, seed);
	arena->memory = malloc(ARENA_BYTES);
	tenant_fill(arena->memory, ARENA_BYTES, seed);
	arena->model = calloc(1, model_bytes);
	arena->model_bytes = model_bytes;
}

static void arena_free(struct arena *arena)
{
	free(arena->memory);
	free(arena->model);
}

static uint32_t below(struct arena *arena, uint32_t bound)
{
	return rbx_random_below(&arena->random, bound);
}

/* Cuts a length into segments of all magnitudes, which lie in the quarter one after
 * another with gaps. Returns how many. */
static uint32_t list_make(struct arena *arena, struct rbx_segment *segments,
			  uint8_t *at, uint32_t length_bytes)
{
	uint32_t magnitude = below(arena, 18), count = 0;

	while (length_bytes) {
		uint32_t most = 2u << RBX_MAX(magnitude, below(arena, 14));
		uint32_t step = 1 + below(arena, most);

		if (count == RBX_SEGMENTS_MAX - 1 || step > length_bytes)
			step = length_bytes;
		segments[count++] = (struct rbx_segment){
			.addr = at,
			.length_bytes = step,
			.region = below(arena, 2) ? arena->region : NULL,
		};
		at += step + below(arena, step < 1000 ? 2 : 900);
		length_bytes -= step;
	}
	return count;
}

/* Each has a part of the volume of its own. */
static void request_make(struct arena *arena, uint32_t index)
{
	static const uint8_t flags[] = { 0, 0, RBX_URGENT, RBX_FENCE,
					 RBX_NO_MERGE };
	uint64_t part_bytes = arena->model_bytes / BATCH;
	uint32_t length = 1 + below(arena, 2u << below(arena, 17));
	struct rbx_request *request = &arena->requests[index];
	uint8_t *at = arena->memory + index * (ARENA_BYTES / BATCH);
	uint64_t offset;

	if (arena->in_pages)
		length = (length + PAGE - 1) / PAGE * PAGE;
	offset = index * part_bytes + below(arena, part_bytes - length);
	if (arena->in_pages)
		offset = offset / PAGE * PAGE;
	*request = (struct rbx_request){
		.op = below(arena, 2) ? RBX_READ : RBX_WRITE,
		.flags = flags[below(arena, sizeof(flags))],
		.offset = offset,
		.length_bytes = length,
	};
	if (below(arena, 3) == 0) {
		request->buf = at + below(arena, ARENA_BYTES / BATCH - length);
		return;
	}
	request->segments = arena->segments[index];
	request->segments_count =
		list_make(arena, arena->segments[index], at, length);
}

/* The model does what a request that has ended should have done, or has told. */
static void request_judge(struct arena *arena, const struct rbx_request *request)
{
	const struct rbx_segment whole = { .addr = request->buf,
					   .length_bytes = request->length_bytes };
	const struct rbx_segment *segments = request->segments ? request->segments : &whole;
	uint32_t count = request->segments ? request->segments_count : 1, i;
	uint64_t offset = request->offset;

	assert_int_equal(request->status, 0);
	for (i = 0; i < count; i++) {
		const struct rbx_segment *segment = &segments[i];

		if (request->op == RBX_WRITE)
			memcpy(arena->model + offset, segment->addr,
			       segment->length_bytes);
		else
			assert_memory_equal(arena->model + offset, segment->addr,
					    segment->length_bytes);
		offset += segment->length_bytes;
	}
}

/* A volume or borrowed memory. */
struct target {
	struct rbx_context *ctx;
	struct rbx_volume *volume;
	struct rbx_remote *remote;
};

static int submit(struct target *target, struct rbx_request *const list[],
		  uint32_t count)
{
	return target->volume ? rbx_submit(target->volume, list, count) :
				rbx_remote_submit(target->remote, list, count);
}

static void batch_run(struct target *target, struct arena *arena)
{
	struct rbx_request *list[BATCH], *done[BATCH];
	uint32_t i, count = 0;
	int err;

	for (i = 0; i < BATCH; i++) {
		request_make(arena, i);
		list[i] = &arena->requests[i];
	}
	/* Bytes outside of the segments are nobody's. */
	while ((err = submit(target, list, BATCH)) == -EAGAIN)
		(void)rbx_wait_room(target->ctx, TENANT_WAIT_MS);
	if (err)
		fail_msg("%s", rbx_last_error());
	while (count < BATCH) {
		err = rbx_reap(target->ctx, done, BATCH, TENANT_WAIT_MS);
		assert_true(err > 0);
		count += (uint32_t)err;
	}
	for (i = 0; i < BATCH; i++)
		request_judge(arena, list[i]);
}

static void volume_is_the_model(struct rbx_volume *volume, struct arena *arena)
{
	uint8_t *found = malloc(arena->model_bytes);

	if (rbx_read(volume, found, arena->model_bytes, 0))
		fail_msg("%s", rbx_last_error());
	assert_memory_equal(found, arena->model, arena->model_bytes);
	free(found);
}

/* ---- Volumes --------------------------------------------------------------------*/

struct shape {
	const char *settings;
	uint32_t checksums;
	uint32_t on_demand;
	bool has_region;
};

static void volume_run(const struct shape *shape, uint64_t seed)
{
	struct rbx_volume_options options;
	struct server_process servers[3];
	struct target target = { 0 };
	struct arena arena;
	char list[256];
	uint32_t i;

	for (i = 0; i < 3; i++)
		server_process_start(&servers[i], "127.0.0.1:0", NULL);
	arena_make(&arena, VOLUME_BYTES, seed);
	arena.in_pages = shape->checksums;
	target.ctx = tenant_context(shape->settings);
	if (shape->has_region)
		assert_int_equal(rbx_region_register(target.ctx, arena.memory,
						     ARENA_BYTES, &arena.region),
				 0);
	rbx_volume_options_defaults(&options);
	options.replicas = 2;
	options.checksums = shape->checksums;
	options.on_demand = shape->on_demand;
	snprintf(list, sizeof(list), "%s,%s,%s", servers[0].address,
		 servers[1].address, servers[2].address);
	if (rbx_volume_open(target.ctx, &target.volume, list, VOLUME_BYTES,
			    &options))
		fail_msg("%s", rbx_last_error());
	for (i = 0; i < 60; i++) {
		if (i == 30)
			server_process_kill(&servers[seed % 3]);
		batch_run(&target, &arena);
	}
	volume_is_the_model(target.volume, &arena);
	assert_int_equal(target.volume->bounces.used_count, 0);
	assert_int_equal(rbx_volume_close(target.volume), 0);
	rbx_region_release(arena.region);
	assert_int_equal(rbx_close(target.ctx), 0);
	for (i = 0; i < 3; i++)
		server_process_kill(&servers[i]);
	arena_free(&arena);
}

/* Regions stay; and such as leave all the time, as there is no room. */
#define CACHED "buffers=cached tune_file=none "
#define CRAMPED "region_cache_regions=24 region_cache_bytes=1M requests_max=1024 "

/* A server that is only slow is none that is lost. */
#define PATIENT "peer_timeout_ms=10000 "

static void volume_lists_of_any_shape_are_what_the_model_says(void **state)
{
	static const struct shape shapes[] = {
		{ PATIENT "fabric=soft:tcp", 0, 0, false },
		{ PATIENT "fabric=soft:tcp", 1, 0, false },
		{ PATIENT "fabric=soft", 1, 1, false },
		{ PATIENT "fabric=soft fragment_bytes=4K", 0, 1, false },
		{ PATIENT REGISTERED "buffers=staging", 0, 0, false },
		{ PATIENT REGISTERED "buffers=direct", 1, 0, true },
		{ PATIENT REGISTERED "buffers=direct", 0, 0, false },
		{ PATIENT REGISTERED, 0, 0, true },
		{ PATIENT REGISTERED CACHED, 0, 0, true },
		{ PATIENT REGISTERED CACHED, 1, 0, false },
		{ PATIENT REGISTERED CACHED CRAMPED, 1, 0, false },
	};
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		volume_run(&shapes[i], i);
}

/* ---- Borrowed memory --------------------------------------------------------------*/

static void remote_run(const char *settings, bool has_region)
{
	struct tenant tenant;
	struct target target = { 0 };
	struct arena arena;
	uint8_t *found = malloc(TENANT_SLAB_BYTES);
	uint32_t i;

	tenant_open(&tenant, settings);
	target.ctx = tenant.ctx;
	target.remote = tenant.remote;
	arena_make(&arena, TENANT_SLAB_BYTES, 3);
	if (has_region)
		assert_int_equal(rbx_region_register(target.ctx, arena.memory,
						     ARENA_BYTES, &arena.region),
				 0);
	for (i = 0; i < 60; i++)
		batch_run(&target, &arena);
	assert_int_equal(tenant_transfer(&tenant, RBX_READ, found,
					 TENANT_SLAB_BYTES, 0),
			 0);
	assert_memory_equal(found, arena.model, TENANT_SLAB_BYTES);
	rbx_region_release(arena.region);
	if (strstr(settings, "registered") && !strstr(settings, CACHED))
		assert_all_end(target.ctx);
	arena_free(&arena);
	tenant_close(&tenant);
	free(found);
}

static void remote_lists_of_any_shape_are_what_the_model_says(void **state)
{
	(void)state;
	remote_run("mode=hybrid", false);
	remote_run("fragment_bytes=4K mode=single", false);
	remote_run(REGISTERED "buffers=direct fragment_bytes=16K", false);
	remote_run(REGISTERED "buffers=staging", false);
	remote_run(auto_settings, false);
	remote_run(REGISTERED CACHED, true);
	remote_run(REGISTERED CACHED CRAMPED "fragment_bytes=4K", false);
}

/* ---- Registrations ------------------------------------------------------------------*/

static void each_segment_is_registered_and_ends_or_lies_in_its_region(void **state)
{
	static uint8_t bytes[5 * PAGE];
	struct rbx_segment segments[5];
	struct rbx_request request = { .op = RBX_WRITE,
				       .length_bytes = 5 * PAGE,
				       .segments = segments,
				       .segments_count = 5 };
	struct rbx_request *list = &request;
	struct rbx_region *region;
	struct tenant tenant;
	uint32_t i;

	(void)state;
	tenant_open(&tenant, REGISTERED "buffers=direct");
	assert_int_equal(rbx_region_register(tenant.ctx, bytes, 2 * PAGE,
					     &region),
			 0);
	for (i = 0; i < 5; i++)
		segments[i] = (struct rbx_segment){
			.addr = bytes + i * PAGE,
			.length_bytes = PAGE,
			.region = i < 2 ? region : NULL,
		};
	assert_int_equal(rbx_remote_submit(tenant.remote, &list, 1), 0);
	tenant_reap(tenant.ctx, 1);
	assert_int_equal(registered(tenant.ctx), 1 + 3);
	assert_int_equal(tenant_stats(tenant.ctx).staged_bytes, 0);
	assert_int_equal(tenant_stats(tenant.ctx).work_requests, 1);
	rbx_region_release(region);
	assert_all_end(tenant.ctx);
	tenant_close(&tenant);
}

static void more_segments_than_can_be_registered_are_refused(void **state)
{
	static uint8_t byte[RBX_SEGMENTS_MAX];
	static struct rbx_segment segments[RBX_SEGMENTS_MAX];
	struct rbx_request requests[9], *list[9];
	struct rbx_volume *volume;
	struct tenant tenant;
	uint32_t i;

	(void)state;
	for (i = 0; i < RBX_SEGMENTS_MAX; i++)
		segments[i] = (struct rbx_segment){ .addr = &byte[i],
						    .length_bytes = 1 };
	for (i = 0; i < 9; i++) {
		requests[i] = (struct rbx_request){
			.op = RBX_WRITE,
			.length_bytes = RBX_SEGMENTS_MAX,
			.segments = segments,
			.segments_count = RBX_SEGMENTS_MAX,
		};
		list[i] = &requests[i];
	}
	tenant_open(&tenant, REGISTERED "buffers=direct requests_max=4096");
	assert_int_equal(rbx_remote_submit(tenant.remote, list, 9), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "2304 segments"));
	assert_int_equal(rbx_remote_submit(tenant.remote, list, 8), 0);
	tenant_reap(tenant.ctx, 8);
	/* Nor has a volume kept anything for them. */
	assert_int_equal(rbx_volume_open(tenant.ctx, &volume,
					 rbx_server_address(tenant.server),
					 TENANT_SLAB_BYTES, NULL), 0);
	assert_int_equal(rbx_submit(volume, list, 9), -EINVAL);
	assert_int_equal(volume->bounces.used_count, 0);
	rbx_volume_close(volume);
	assert_all_end(tenant.ctx);
	tenant_close(&tenant);
}

/* ---- Bad lists ------------------------------------------------------------------------*/

static void bad_list_is_refused_and_the_segment_named(void **state)
{
	static uint8_t bytes[8 * PAGE];
	static struct rbx_segment good[RBX_SEGMENTS_MAX + 1];
	struct rbx_region *region;
	struct tenant tenant;
	uint32_t i;
	struct {
		uint32_t count, length, index;
		struct rbx_segment segment; /* at the index */
		const char *says;
	} cases[] = {
		{ 0, 40, 0, { bytes, 10, NULL }, "0 segments" },
		{ RBX_SEGMENTS_MAX + 1, 2570, 0, { bytes, 10, NULL }, "257 segments" },
		{ 4, 40, 2, { NULL, 10, NULL }, "segment 2 of 4" },
		{ 4, 30, 3, { bytes, 0, NULL }, "segment 3 of 4" },
		{ 4, 40, 1, { bytes, 11, NULL }, "segment 3 of 4" },
		{ 4, 40, 3, { bytes, 9, NULL }, "segment 3, the last" },
		{ 4, 40, 1, { bytes, UINT32_MAX, NULL }, "segment 1 of 4" },
		{ 4, 40, 1, { bytes + PAGE - 5, 10, (void *)1 }, "segment 1 of 4" },
	};

	(void)state;
	tenant_open(&tenant, "");
	assert_int_equal(rbx_region_register(tenant.ctx, bytes, PAGE, &region),
			 0);
	for (i = 0; i <= RBX_SEGMENTS_MAX; i++)
		good[i] = (struct rbx_segment){ .addr = bytes, .length_bytes = 10 };
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rbx_segment kept = good[cases[i].index];
		struct rbx_request request = {
			.op = RBX_WRITE,
			.length_bytes = cases[i].length,
			.segments = good,
			.segments_count = cases[i].count,
		};
		struct rbx_request *list = &request;

		if (cases[i].segment.region)
			cases[i].segment.region = region;
		good[cases[i].index] = cases[i].segment;
		assert_int_equal(rbx_remote_submit(tenant.remote, &list, 1),
				 -EINVAL);
		if (!strstr(rbx_last_error(), cases[i].says))
			fail_msg("case %u: %s", i, rbx_last_error());
		good[cases[i].index] = kept;
		/* The request is as good as new. */
		request.segments_count = 4;
		request.length_bytes = 40;
		assert_int_equal(rbx_remote_submit(tenant.remote, &list, 1), 0);
		tenant_reap(tenant.ctx, 1);
		/* One or the other. */
		request.buf = bytes;
		assert_int_equal(rbx_remote_submit(tenant.remote, &list, 1),
				 -EINVAL);
	}
	rbx_region_release(region);
	tenant_close(&tenant);
}

/* ---- Waited for ---------------------------------------------------------------------*/

static void readv_and_writev_are_as_the_calls_of_files(void **state)
{
	static uint8_t in[5 * PAGE], out[5 * PAGE];
	struct iovec parts[] = { { in, 3 }, { in + 3, 0 }, { in + 3, 4 * PAGE },
				 { in + 3 + 4 * PAGE, PAGE - 3 } };
	struct iovec back[] = { { out, 5 * PAGE - 1 }, { out + 5 * PAGE - 1, 1 } };
	struct iovec none[] = { { in, 0 } }, long_one[] = { { in, 1ull << 33 } };
	struct rbx_server *server = tenant_server();
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume *volume;

	(void)state;
	assert_int_equal(rbx_volume_open(ctx, &volume, rbx_server_address(server),
					 VOLUME_BYTES, NULL),
			 0);
	tenant_fill(in, sizeof(in), 1);
	assert_int_equal(rbx_writev(volume, parts, 4, 777), 0);
	assert_int_equal(rbx_readv(volume, back, 2, 777), 0);
	assert_memory_equal(in, out, sizeof(in));
	assert_int_equal(rbx_writev(volume, none, 1, 0), -EINVAL);
	assert_int_equal(rbx_writev(volume, long_one, 1, 0), -EINVAL);
	assert_int_equal(rbx_writev(volume, parts, 0, 0), -EINVAL);
	assert_int_equal(rbx_writev(volume, parts, RBX_SEGMENTS_MAX + 1, 0),
			 -EINVAL);
	assert_int_equal(rbx_readv(volume, NULL, 1, 0), -EINVAL);
	assert_int_equal(rbx_readv(NULL, parts, 1, 0), -EINVAL);
	assert_int_equal(rbx_readv(volume, parts, 4, VOLUME_BYTES - 1), -EINVAL);
	rbx_volume_close(volume);
	rbx_close(ctx);
	rbx_server_stop(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			volume_lists_of_any_shape_are_what_the_model_says),
		cmocka_unit_test(
			remote_lists_of_any_shape_are_what_the_model_says),
		cmocka_unit_test(
			each_segment_is_registered_and_ends_or_lies_in_its_region),
		cmocka_unit_test(more_segments_than_can_be_registered_are_refused),
		cmocka_unit_test(bad_list_is_refused_and_the_segment_named),
		cmocka_unit_test(readv_and_writev_are_as_the_calls_of_files),
	};

	return cmocka_run_group_tests(tests, make_tune_file, remove_tune_file);
}
