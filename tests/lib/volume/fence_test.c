/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fence_test.c - requests with RBX_FENCE: each waits for all before it.
 */
#include "tests/lib/fake_volume.h"

static void fence_waits_for_writes_that_wait_themselves(void **state)
{
	static uint8_t one[64], two[64], out[64];
	struct rbx_volume *volume = open_volume("a:1", 1, 0);
	struct job first = job_make(RBX_WRITE, one, 64, 0);
	struct job second = job_make(RBX_WRITE, two, 64, 0);
	struct job fenced = job_make(RBX_READ, out, 64, 0);
	struct job free_one = job_make(RBX_WRITE, one, 64, SLAB_BYTES);
	struct job fenced_too = job_make(RBX_READ, one, 64, SLAB_BYTES);

	(void)state;
	memset(one, 1, sizeof(one));
	memset(two, 2, sizeof(two));
	fenced.request.flags = RBX_FENCE;
	fenced_too.request.flags = RBX_FENCE;
	assert_int_equal(job_submit(volume, &first), 0);
	assert_int_equal(job_submit(volume, &second), 0);
	assert_int_equal(job_submit(volume, &fenced), 0);
	/* Only the first is at the peer: the second waits for it. */
	assert_int_equal(fake_network_pending_count(), 1);
	assert_int_equal(job_submit(volume, &free_one), 0);
	assert_int_equal(job_submit(volume, &fenced_too), 0);
	assert_int_equal(fake_network_pending_count(), 2);
	poll_all();
	assert_int_equal(fenced.completed_count, 1);
	assert_int_equal(fenced_too.completed_count, 1);
	assert_memory_equal(out, two, sizeof(out));
	rbx_volume_close(volume);
}

/* Of those with it in a call, the earlier ones start before it, and the later ones pass it. */
static void fence_amid_one_submit_is_for_its_request_alone(void **state)
{
	static uint8_t in[CELL_BYTES * 2], out[CELL_BYTES * 2], late[CELL_BYTES * 2];
	struct rbx_volume *volume = open_volume("a:1,b:1", 2, 0);
	struct job write = job_make(RBX_WRITE, in, sizeof(in), 100);
	struct job read = job_make(RBX_READ, out, sizeof(out), 100);
	struct job other = job_make(RBX_WRITE, late, sizeof(late), 8 * CELL_BYTES);
	struct rbx_request *requests[] = { &write.request, &read.request, &other.request };

	(void)state;
	memset(in, 5, sizeof(in));
	write.request.user = &write;
	read.request.user = &read;
	other.request.user = &other;
	read.request.flags = RBX_FENCE;
	assert_int_equal(rbx_submit(volume, requests, 3), 0);
	poll_all();
	assert_int_equal(write.completed_count, 1);
	assert_int_equal(read.completed_count, 1);
	assert_int_equal(other.completed_count, 1);
	assert_memory_equal(in, out, sizeof(in));
	rbx_volume_close(volume);
}

static void fence_within_one_submit_orders_it(void **state)
{
	static uint8_t in[CELL_BYTES * 2], out[CELL_BYTES * 2];
	struct rbx_volume *volume = open_volume("a:1,b:1", 2, 0);
	struct job write = job_make(RBX_WRITE, in, sizeof(in), 100);
	struct job read = job_make(RBX_READ, out, sizeof(out), 100);
	struct rbx_request *requests[] = { &write.request, &read.request };

	(void)state;
	memset(in, 5, sizeof(in));
	write.request.user = &write;
	read.request.user = &read;
	read.request.flags = RBX_FENCE;
	assert_int_equal(rbx_submit(volume, requests, 2), 0);
	poll_all();
	assert_int_equal(read.completed_count, 1);
	assert_memory_equal(in, out, sizeof(in));
	/* Alone it starts at once. */
	read.completed_count = 0;
	assert_int_equal(job_submit(volume, &read), 0);
	poll_all();
	assert_int_equal(read.completed_count, 1);
	rbx_volume_close(volume);
}

/* A fenced request and what was submitted before it, in one row of requests. */
struct fenced {
	struct job job;
	const struct job *before[4];
	uint32_t early_count; /* how many had not ended when it did */
};

static void fenced_done(struct rbx_request *request)
{
	struct fenced *fenced = request->user;

	for (uint32_t i = 0; i < 4 && fenced->before[i]; i++)
		fenced->early_count += fenced->before[i]->completed_count == 0;
	fenced->job.completed_count++;
}

static void fenced_submit(struct rbx_volume *volume, struct fenced *fenced)
{
	struct rbx_request *request = &fenced->job.request;

	request->flags = RBX_FENCE;
	request->complete = fenced_done;
	request->user = fenced;
	assert_int_equal(rbx_submit(volume, &request, 1), 0);
}

/* Again and again, for the network ends what is under way in any order, and a fence
 * is not to inherit what the one before it has seen. */
static void fences_in_a_row_each_wait_for_all_before_them(void **state)
{
	static uint8_t buf[64];
	struct rbx_volume *volume = open_volume("a:1,b:1", 1, 0);

	(void)state;
	for (uint32_t round = 0; round < 64; round++) {
		struct job first = job_make(RBX_WRITE, buf, 64, 0);
		struct job second = job_make(RBX_WRITE, buf, 64, SLAB_BYTES);
		struct fenced one = { .before = { &first } };
		struct fenced two = { .before = { &first, &one.job, &second } };

		one.job = job_make(RBX_READ, buf, 64, 2 * SLAB_BYTES);
		two.job = job_make(RBX_READ, buf, 64, 3 * SLAB_BYTES);
		assert_int_equal(job_submit(volume, &first), 0);
		fenced_submit(volume, &one);
		assert_int_equal(job_submit(volume, &second), 0);
		fenced_submit(volume, &two);
		poll_all();
		assert_int_equal(one.job.completed_count, 1);
		assert_int_equal(two.job.completed_count, 1);
		assert_int_equal(one.early_count + two.early_count, 0);
	}
	rbx_volume_close(volume);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(fence_waits_for_writes_that_wait_themselves),
		TEST(fence_within_one_submit_orders_it),
		TEST(fence_amid_one_submit_is_for_its_request_alone),
		TEST(fences_in_a_row_each_wait_for_all_before_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
