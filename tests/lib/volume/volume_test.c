/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_test.c - the user-space host of a volume over fake memory servers:
 * what the public calls promise of opening and of requests, one by one. Fences are in
 * volume_fence_test.c; volume_loss_test.c loses servers; volume_storm_test.c has
 * threads and faults at random.
 */
#include "lib/poller/plug.h"
#include "tests/lib/fake_volume.h"

/* ---- Requests -------------------------------------------------------------*/

static void volume_written_bytes_are_read_rest_is_zero(void **state)
{
	static uint8_t in[3 * CELL_BYTES + 100], out[VOLUME_BYTES];
	struct rbx_volume *volume = open_volume("a:1,b:1,c:1", 2, 0);
	uint64_t offset = SLAB_BYTES - CELL_BYTES - 17;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 7 + 1);
	assert_int_equal(rbx_write(volume, in, sizeof(in), offset), 0);
	memset(out, 0xee, sizeof(out));
	assert_int_equal(rbx_read(volume, out, sizeof(out), 0), 0);
	assert_memory_equal(out + offset, in, sizeof(in));
	for (i = 0; i < sizeof(out); i++)
		if (i < offset || i >= offset + sizeof(in))
			assert_int_equal(out[i], 0);
	assert_int_equal(rbx_volume_size(volume), VOLUME_BYTES);
	rbx_volume_close(volume);
}

/* The pool holds two of them. */
static void what_is_longer_than_the_pool_goes_in_portions(void **state)
{
	static uint8_t in[VOLUME_BYTES], out[VOLUME_BYTES];
	struct rbx_volume *volume;

	(void)state;
	ctx->options.requests_max = 8;
	volume = open_volume("a:1", 1, 0);
	fill(volume, in);
	assert_int_equal(rbx_read(volume, out, VOLUME_BYTES, 0), 0);
	assert_memory_equal(in, out, VOLUME_BYTES);
	rbx_volume_close(volume);
}

static void request_malformed_is_refused_and_nothing_sent(void **state)
{
	static uint8_t buf[8192];
	static const struct rbx_segment segment = { .addr = buf,
						    .length_bytes = 1 };
	struct rbx_volume *volume = open_volume("a:1", 1, 0);
	struct job good = job_make(RBX_WRITE, buf, 100, 0);
	struct {
		struct job job;
		const char *text;
	} bad[] = {
		{ job_make(RBX_WRITE, buf, 2, VOLUME_BYTES - 1), "beyond" },
		{ job_make(RBX_READ, buf, 1, VOLUME_BYTES), "beyond" },
		{ job_make(RBX_READ, buf, 1, UINT64_MAX), "beyond" },
		{ job_make(RBX_READ, buf, 0, 0), "at least 1 byte" },
		{ job_make(RBX_READ, NULL, 1, 0), "has neither" },
		{ job_make((enum rbx_op)2, buf, 1, 0), "op 2" },
		{ job_make(RBX_READ, buf, 1, 0), "flags 0x8" },
		{ job_make(RBX_READ, buf, 1, 0), "region" },
		{ job_make(RBX_READ, buf, VOLUME_BYTES, 1), "beyond" },
		{ job_make(RBX_READ, buf, 1, 0), "borrowed memory" },
		{ job_make(RBX_READ, buf, 1, 0), "not both" },
	};
	struct rbx_request *both[2];
	size_t i;

	(void)state;
	bad[6].job.request.flags = 8;
	bad[7].job.request.region = (struct rbx_region *)2;
	bad[9].job.request.flags = RBX_NO_RESEND;
	bad[10].job.request.segments = &segment;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		both[0] = &good.request;
		both[1] = &bad[i].job.request;
		assert_int_equal(rbx_submit(volume, both, 2), -EINVAL);
		if (!strstr(rbx_last_error(), bad[i].text))
			fail_msg("%s: not said: %s", bad[i].text, rbx_last_error());
	}
	assert_int_equal(rbx_submit(volume, both, 0), -EINVAL);
	assert_int_equal(rbx_submit(volume, both, RBX_SUBMIT_MAX + 1), -EINVAL);
	assert_int_equal(rbx_submit(NULL, both, 1), -EINVAL);
	assert_int_equal(fake_network_fragments_count(), 0);
	assert_int_equal(good.completed_count, 0);
	rbx_volume_close(volume);
}

static void request_part_of_a_page_with_checksums_is_refused(void **state)
{
	static uint8_t buf[8192];
	struct rbx_volume *volume = open_volume("a:1", 1, 1);

	(void)state;
	assert_int_equal(rbx_write(volume, buf, 100, 0), -EINVAL);
	assert_int_equal(rbx_write(volume, buf, 4096, 512), -EINVAL);
	assert_int_equal(rbx_write(volume, buf, 4096, 4096), 0);
	rbx_volume_close(volume);
}

static void request_in_region_carries_its_lkey(void **state)
{
	static uint8_t buf[64];
	struct rbx_volume *volume = open_volume("a:1", 1, 0);
	struct job job = job_make(RBX_WRITE, buf, 64, 0);

	(void)state;
	job.request.region = (struct rbx_region *)1;
	assert_int_equal(job_submit(volume, &job), 0);
	assert_int_equal(job.completed_count, 0);
	poll_all();
	assert_int_equal(job.completed_count, 1);
	assert_int_equal(job.request.status, 0);
	rbx_volume_close(volume);
}

static void submit_beyond_requests_max_is_all_or_nothing(void **state)
{
	static uint8_t buf[VOLUME_BYTES];
	static struct job jobs[REQUESTS_MAX];
	struct rbx_volume *volume = open_volume("a:1", 1, 0);
	/* Two pieces, and one is free. */
	struct job extra = job_make(RBX_WRITE, buf, 2, CELL_BYTES - 1);
	uint32_t i;

	(void)state;
	for (i = 0; i < REQUESTS_MAX - 1; i++) {
		jobs[i] = job_make(RBX_WRITE, buf, 1, i);
		assert_int_equal(job_submit(volume, &jobs[i]), 0);
	}
	i = (uint32_t)fake_network_fragments_count();
	assert_int_equal(job_submit(volume, &extra), -EAGAIN);
	assert_int_equal(fake_network_fragments_count(), i);
	poll_all();
	assert_int_equal(job_submit(volume, &extra), 0);
	poll_all();
	for (i = 0; i < REQUESTS_MAX - 1; i++) {
		assert_int_equal(jobs[i].completed_count, 1);
		assert_int_equal(jobs[i].request.status, 0);
	}
	assert_int_equal(extra.completed_count, 1);
	rbx_volume_close(volume);
}

static void submit_that_can_never_fit_is_refused(void **state)
{
	static uint8_t buf[VOLUME_BYTES];
	static struct job jobs[10];
	struct rbx_request *requests[10];
	struct rbx_volume *volume = open_volume("a:1", 1, 0);
	uint32_t i;

	(void)state;
	for (i = 0; i < 10; i++) {
		jobs[i] = job_make(RBX_READ, buf, VOLUME_BYTES, 0);
		requests[i] = &jobs[i].request;
	}
	assert_int_equal(rbx_submit(volume, requests, 10), -EINVAL);
	rbx_volume_close(volume);
}

static void submit_of_many_reaches_the_peer_in_one_call(void **state)
{
	static uint8_t buf[8][64];
	static struct job jobs[8];
	struct rbx_request *requests[8];
	struct rbx_volume *volume = open_volume("a:1", 1, 0);
	uint32_t i;

	(void)state;
	for (i = 0; i < 8; i++) {
		jobs[i] = job_make(RBX_WRITE, buf[i], 64, i * SLAB_BYTES / 2);
		jobs[i].request.user = &jobs[i];
		requests[i] = &jobs[i].request;
	}
	assert_int_equal(rbx_submit(volume, requests, 8), 0);
	assert_int_equal(fake_network_fragments_count(), 8);
	assert_int_equal(fake_network_submits_count(), 1);
	poll_all();
	rbx_volume_close(volume);
}

static int callback_result;

static void read_back(struct rbx_request *request)
{
	callback_result = rbx_read(request->user, request->buf, 1, 0);
}

static void read_in_callback_is_refused(void **state)
{
	uint8_t byte = 1;
	struct rbx_volume *volume = open_volume("a:1", 1, 0);
	struct rbx_request request = { .op = RBX_WRITE,
				       .length_bytes = 1,
				       .buf = &byte,
				       .complete = read_back,
				       .user = volume };
	struct rbx_request *requests[] = { &request };

	(void)state;
	assert_int_equal(rbx_submit(volume, requests, 1), 0);
	poll_all();
	assert_int_equal(callback_result, -EDEADLK);
	rbx_volume_close(volume);
}

/* ---- Two volumes ------------------------------------------------------------*/

static void plug_keeps_two_volumes_apart(void **state)
{
	static uint8_t ones[64], twos[64], out[64];
	struct rbx_volume *one = open_volume("a:1", 1, 0);
	struct rbx_volume *two = open_volume("b:1", 1, 0);
	struct job jobs[] = {
		job_make(RBX_WRITE, ones, 64, 0),
		job_make(RBX_WRITE, twos, 64, 0),
		job_make(RBX_WRITE, ones, 64, SLAB_BYTES),
	};

	(void)state;
	memset(ones, 1, sizeof(ones));
	memset(twos, 2, sizeof(twos));
	rbx_plug_push();
	assert_int_equal(job_submit(one, &jobs[0]), 0);
	assert_int_equal(job_submit(two, &jobs[1]), 0);
	assert_int_equal(job_submit(one, &jobs[2]), 0);
	rbx_plug_pull();
	assert_int_equal(fake_server_pending_count(servers[0]), 2);
	assert_int_equal(fake_server_pending_count(servers[1]), 1);
	poll_all();
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(jobs[i].completed_count, 1);
		assert_int_equal(jobs[i].request.status, 0);
	}
	assert_int_equal(rbx_read(one, out, 64, 0), 0);
	assert_memory_equal(out, ones, 64);
	assert_int_equal(rbx_read(two, out, 64, 0), 0);
	assert_memory_equal(out, twos, 64);
	assert_int_equal(rbx_read(one, out, 64, SLAB_BYTES), 0);
	assert_memory_equal(out, ones, 64);
	rbx_volume_close(two);
	rbx_volume_close(one);
}

/* ---- Opening --------------------------------------------------------------*/

static int open_error(const char *list, uint64_t size, uint32_t replicas)
{
	struct rbx_volume_options options;
	struct rbx_volume *volume;
	int err;

	rbx_volume_options_defaults(&options);
	options.replicas = replicas;
	err = rbx_volume_open(ctx, &volume, list, size, &options);
	assert_true(err < 0);
	assert_true(rbx_last_error()[0]);
	return err;
}

static void open_impossible_is_refused_and_nothing_stays_borrowed(void **state)
{
	struct fake_server *other =
		fake_server_start("other:1", 2 * SLAB_BYTES, 4);
	uint32_t i;

	(void)state;
	assert_int_equal(open_error("", VOLUME_BYTES, 1), -EINVAL);
	assert_int_equal(open_error("a:1,,b:1", VOLUME_BYTES, 1), -EINVAL);
	assert_int_equal(open_error("a:1", VOLUME_BYTES, 2), -EINVAL);
	assert_int_equal(open_error("a:1", VOLUME_BYTES, 4), -EINVAL);
	assert_int_equal(open_error("a:1,a:1", VOLUME_BYTES, 2), -EINVAL);
	assert_int_equal(open_error("a:1,other:1", VOLUME_BYTES, 1), -EINVAL);
	assert_int_equal(open_error("a:1", 0, 1), -EINVAL);
	assert_int_equal(open_error("a:1", 5000, 1), -EINVAL);
	assert_int_equal(open_error("a:1,nobody:1", VOLUME_BYTES, 1),
			 -EHOSTUNREACH);
	assert_int_equal(open_error("a:1,b:1", 17ull * SLAB_BYTES, 2),
			 -ENOSPC);
	/* Each server has 16 slabs of 64 KiB. */
	assert_non_null(strstr(rbx_last_error(), " is full (asked for: 1.0625 MiB, 2 copies, "
			       "in slabs of 0.0625 MiB; a:1 has 1 MiB free; b:1 has 1 MiB free)"));
	fake_server_set_refuse(servers[1], -EDQUOT);
	assert_int_equal(open_error("a:1,b:1", VOLUME_BYTES, 2), -EDQUOT);
	for (i = 0; i < 4; i++)
		assert_int_equal(fake_server_lent_count(servers[i]), 0);
	assert_int_equal(other->sessions_count, 0);
}

static void open_spreads_replicas_over_servers(void **state)
{
	struct rbx_volume *volume = open_volume("a:1,b:1", 2, 0);
	struct rbx_volume_status status;

	(void)state;
	assert_int_equal(fake_server_lent_count(servers[0]), 4);
	assert_int_equal(fake_server_lent_count(servers[1]), 4);
	rbx_volume_status(volume, &status);
	assert_int_equal(status.slabs, 4);
	assert_int_equal(status.slabs_whole, 4);
	assert_int_equal(status.servers, 2);
	assert_int_equal(status.servers_up, 2);
	rbx_volume_close(volume);
}

static void each_event_has_words_of_its_own(void **state)
{
	(void)state;
	assert_string_equal(rbx_event_name(RBX_EVENT_SERVER_DOWN), "server down");
	assert_string_equal(rbx_event_name(RBX_EVENT_REBUILD_STARTED),
			    "rebuild started");
	assert_string_equal(rbx_event_name(RBX_EVENT_REBUILD_DONE),
			    "rebuild done");
	assert_string_equal(rbx_event_name(RBX_EVENT_REBUILD_STUCK),
			    "rebuild stuck");
	assert_string_equal(rbx_event_name(RBX_EVENT_DATA_LOST), "data lost");
	assert_string_equal(rbx_event_name((enum rbx_event_kind)77), "event");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(volume_written_bytes_are_read_rest_is_zero),
		TEST(what_is_longer_than_the_pool_goes_in_portions),
		TEST(request_malformed_is_refused_and_nothing_sent),
		TEST(request_part_of_a_page_with_checksums_is_refused),
		TEST(request_in_region_carries_its_lkey),
		TEST(submit_beyond_requests_max_is_all_or_nothing),
		TEST(submit_that_can_never_fit_is_refused),
		TEST(submit_of_many_reaches_the_peer_in_one_call),
		TEST(read_in_callback_is_refused),
		TEST(plug_keeps_two_volumes_apart),
		TEST(open_impossible_is_refused_and_nothing_stays_borrowed),
		TEST(open_spreads_replicas_over_servers),
		TEST(each_event_has_words_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
