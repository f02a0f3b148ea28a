/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * segments_test.c - how a request of segments is cut, over fake memory servers:
 * what is under way at once, and what happens when there are no more pages for it.
 */
#include "lib/volume/volume.h"
#include "tests/lib/fake_volume.h"

/* A request of `count` segments of these lengths, one after another in memory. */
struct list_job {
	struct job job;
	struct rbx_segment segments[RBX_SEGMENTS_MAX];
};

static void list_make(struct list_job *list, enum rbx_op op, uint8_t *at,
		      const uint32_t *lengths, uint32_t count, uint64_t offset)
{
	uint32_t i, sum = 0;

	for (i = 0; i < count; i++) {
		list->segments[i] = (struct rbx_segment){
			.addr = at + sum,
			.length_bytes = lengths[i],
		};
		sum += lengths[i];
	}
	list->job = job_make(op, NULL, sum, offset);
	list->job.request.segments = list->segments;
	list->job.request.segments_count = count;
}

static uint32_t under_way(void)
{
	return fake_server_pending_count(servers[0]);
}

/* Each would take a round trip of its own if they waited for each other. */
static void write_of_short_segments_is_under_way_at_once(void **state)
{
	static const uint32_t lengths[] = { 16, 40, 3000, 8, 200, 700, 4228 };
	static uint8_t in[CELL_BYTES], out[CELL_BYTES];
	struct rbx_volume *volume = open_volume("a:1", 1, 0);
	static struct list_job list;
	uint32_t i, length;

	(void)state;
	for (i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 11 + i / 77);
	/* A granule is 128 bytes: copied are those at 0, 2944, 3200 and 3840; in place
	 * is what lies between them, and behind. */
	list_make(&list, RBX_WRITE, in, lengths, 7, 0);
	assert_int_equal(job_submit(volume, &list.job), 0);
	assert_int_equal(under_way(), 8);
	assert_int_equal(volume->bounces.used_count, 4);
	length = list.job.request.length_bytes;
	poll_all();
	assert_int_equal(list.job.completed_count, 1);
	assert_int_equal(list.job.request.status, 0);
	assert_int_equal(rbx_read(volume, out, length, 0), 0);
	assert_memory_equal(in, out, length);
	rbx_volume_close(volume);
}

/* Each segment ends in the middle of a granule: 255 of them for a request. */
static void long_list_make(struct list_job *list, enum rbx_op op, uint8_t *at,
			   uint32_t index)
{
	uint32_t lengths[RBX_SEGMENTS_MAX], i;

	for (i = 0; i < RBX_SEGMENTS_MAX; i++)
		lengths[i] = 128;
	list_make(list, op, at, lengths, RBX_SEGMENTS_MAX,
		  index * SLAB_BYTES + 64);
}

static void pages_run_out_and_come_back(void **state)
{
	static uint8_t in[3][RBX_SEGMENTS_MAX * 128], out[sizeof(in[0])];
	static struct list_job lists[3];
	struct rbx_request *requests[3];
	struct rbx_volume *volume;
	uint32_t i, k;

	(void)state;
	ctx->options.requests_max = 4096;
	volume = open_volume("a:1", 1, 0);
	for (i = 0; i < 3; i++) {
		for (k = 0; k < sizeof(in[0]); k++)
			in[i][k] = (uint8_t)(k * 3 + k / 101 + i);
		long_list_make(&lists[i], RBX_WRITE, in[i], i);
		requests[i] = &lists[i].job.request;
	}
	/* More than there are. */
	assert_int_equal(rbx_submit(volume, requests, 3), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "765 places"));
	/* More than are left, twice; nothing is kept of it. */
	assert_int_equal(job_submit(volume, &lists[0].job), 0);
	assert_int_equal(job_submit(volume, &lists[1].job), 0);
	assert_int_equal(job_submit(volume, &lists[2].job), -EAGAIN);
	assert_int_equal(job_submit(volume, &lists[2].job), -EAGAIN);
	assert_int_equal(volume->bounces.used_count, 510);
	poll_all();
	assert_int_equal(volume->bounces.used_count, 0);
	assert_int_equal(job_submit(volume, &lists[2].job), 0);
	poll_all();
	for (i = 0; i < 3; i++) {
		assert_int_equal(lists[i].job.completed_count, 1);
		assert_int_equal(lists[i].job.request.status, 0);
		assert_int_equal(rbx_read(volume, out, sizeof(out),
					  i * SLAB_BYTES + 64),
				 0);
		assert_memory_equal(in[i], out, sizeof(out));
	}
	rbx_volume_close(volume);
}

/* Two segments meet in the middle of each page. */
static void damaged_page_in_two_segments_is_read_from_the_other_replica(void **state)
{
	static uint8_t in[2 * CELL_BYTES], out[2 * CELL_BYTES];
	static const uint32_t lengths[] = { 2000, 4096, 4096, 4096, 2096 };
	struct rbx_volume *volume = open_volume("a:1,b:1", 2, 1);
	static struct list_job list;
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 5 + i / 300);
	list_make(&list, RBX_WRITE, in, lengths, 5, 0);
	assert_int_equal(job_submit(volume, &list.job), 0);
	poll_all();
	assert_int_equal(list.job.request.status, 0);
	for (i = 0; i < 16; i++)
		servers[0]->memory[i * SLAB_BYTES + 100] ^= 1;
	list_make(&list, RBX_READ, out, lengths, 5, 0);
	assert_int_equal(job_submit(volume, &list.job), 0);
	poll_all();
	assert_int_equal(list.job.request.status, 0);
	assert_memory_equal(in, out, 16384);
	/* Damaged everywhere: an error, and the segments are left alone. */
	for (i = 0; i < 16; i++) {
		servers[0]->memory[i * SLAB_BYTES + 200] ^= 1;
		servers[1]->memory[i * SLAB_BYTES + 200] ^= 1;
	}
	memset(out, 0, sizeof(out));
	list_make(&list, RBX_READ, out, (const uint32_t[]){ 2000, 2096 }, 2, 0);
	assert_int_equal(job_submit(volume, &list.job), 0);
	poll_all();
	assert_int_equal(list.job.request.status, -EIO);
	for (i = 0; i < 4096; i++)
		assert_int_equal(out[i], 0);
	assert_int_equal(volume->bounces.used_count, 0);
	rbx_volume_close(volume);
}

static void slab_without_memory_reads_as_zeros_into_each_segment(void **state)
{
	static uint8_t out[CELL_BYTES];
	static const uint32_t lengths[] = { 100, 3000, CELL_BYTES - 3100 };
	struct rbx_volume_options options;
	struct rbx_volume *volume;
	static struct list_job list;
	uint32_t i;

	(void)state;
	rbx_volume_options_defaults(&options);
	options.on_demand = 1;
	options.checksums = 1;
	assert_int_equal(rbx_volume_open(ctx, &volume, "a:1", VOLUME_BYTES,
					 &options),
			 0);
	memset(out, 0xee, sizeof(out));
	list_make(&list, RBX_READ, out, lengths, 3, 0);
	assert_int_equal(job_submit(volume, &list.job), 0);
	poll_all();
	assert_int_equal(list.job.request.status, 0);
	for (i = 0; i < sizeof(out); i++)
		assert_int_equal(out[i], 0);
	rbx_volume_close(volume);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(write_of_short_segments_is_under_way_at_once),
		TEST(pages_run_out_and_come_back),
		TEST(damaged_page_in_two_segments_is_read_from_the_other_replica),
		TEST(slab_without_memory_reads_as_zeros_into_each_segment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
