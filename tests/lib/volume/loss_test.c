/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loss_test.c - a volume that loses servers and pages: who goes on, what
 * is rebuilt, and what the program is told.
 */
#include <stdio.h>
#include <unistd.h>

#include "lib/volume/volume.h"
#include "tests/lib/fake_volume.h"

struct diary {
	pthread_mutex_t lock;
	uint32_t counts[5]; /* by enum rbx_event_kind */
	uint32_t slabs[5];
	char order[64];
	char reason[RBX_ERROR_TEXT_MAX]; /* of the last event */
	bool is_held; /* atomic: the callback is held up */
};

static void diary_event(struct rbx_volume *volume,
			const struct rbx_event *event, void *user)
{
	static const char letters[] = "DSFTL";
	struct diary *diary = user;
	size_t length;

	(void)volume;
	pthread_mutex_lock(&diary->lock);
	diary->counts[event->kind]++;
	diary->slabs[event->kind] += event->slab_count;
	length = strlen(diary->order);
	if (length < sizeof(diary->order) - 1)
		diary->order[length] = letters[event->kind];
	rbx_text_copy(diary->reason, sizeof(diary->reason), event->reason);
	pthread_mutex_unlock(&diary->lock);
	while (RBX_LOAD_ACQUIRE(&diary->is_held))
		usleep(1000);
}

static struct rbx_volume *open_with_diary(const char *list, uint32_t replicas,
					  struct diary *diary)
{
	struct rbx_volume_options options;
	struct rbx_volume *volume;

	memset(diary, 0, sizeof(*diary));
	pthread_mutex_init(&diary->lock, NULL);
	rbx_volume_options_defaults(&options);
	options.replicas = replicas;
	options.event = diary_event;
	options.user = diary;
	assert_int_equal(rbx_volume_open(ctx, &volume, list, VOLUME_BYTES,
					 &options),
			 0);
	return volume;
}

static uint32_t diary_count(struct diary *diary, enum rbx_event_kind kind)
{
	uint32_t count;

	pthread_mutex_lock(&diary->lock);
	count = diary->counts[kind];
	pthread_mutex_unlock(&diary->lock);
	return count;
}

/* Polls until it happened so often; the upkeep has a thread of its own. */
static void wait_event(struct diary *diary, enum rbx_event_kind kind,
		       uint32_t count)
{
	uint32_t ms;

	for (ms = 0; ms < PATIENCE_MS; ms++) {
		if (diary_count(diary, kind) >= count)
			return;
		poll_all();
		usleep(1000);
	}
	fail_msg("event %d did not come", kind);
}

static void job_wait(const struct job *job)
{
	uint32_t ms;

	for (ms = 0; ms < PATIENCE_MS && !job->completed_count; ms++) {
		poll_all();
		usleep(1000);
	}
	assert_int_equal(job->completed_count, 1);
}

/* The fake asks whenever a peer is closed, for each that was not stopped. */
static void volume_is_closed_while_a_recovery_asks_about_the_others(void **state)
{
	struct diary diary;

	(void)state;
	rbx_volume_close(open_with_diary("a:1,b:1,c:1", 2, &diary));
}

static void server_dies_copies_are_rebuilt_on_another(void **state)
{
	static uint8_t in[VOLUME_BYTES], out[VOLUME_BYTES];
	struct rbx_volume_status status;
	struct rbx_volume *volume;
	struct diary diary;

	(void)state;
	volume = open_with_diary("a:1,b:1", 2, &diary);
	assert_int_equal(rbx_volume_add_server(volume, "c:1"), 0);
	fill(volume, in);
	fake_server_kill(servers[0]);
	wait_event(&diary, RBX_EVENT_REBUILD_DONE, 1);
	assert_string_equal(diary.order, "DSF");
	assert_int_equal(diary.slabs[RBX_EVENT_SERVER_DOWN], 4);
	assert_int_equal(diary.slabs[RBX_EVENT_REBUILD_STARTED], 4);
	assert_int_equal(diary.slabs[RBX_EVENT_REBUILD_DONE], 4);
	rbx_volume_status(volume, &status);
	assert_int_equal(status.slabs_whole, 4);
	assert_int_equal(status.servers_up, 2);
	assert_int_equal(status.rebuilt_bytes, VOLUME_BYTES);
	assert_int_equal(ctx->counters.volumes.rebuilt_bytes, VOLUME_BYTES);
	/* The rebuilt copies alone have everything. */
	fake_server_kill(servers[1]);
	assert_int_equal(rbx_read(volume, out, VOLUME_BYTES, 0), 0);
	assert_memory_equal(in, out, VOLUME_BYTES);
	assert_int_equal(fake_network_stale_count(), 0);
	rbx_volume_close(volume);
}

static uint32_t queued_count(struct rbx_volume *volume)
{
	uint32_t count;

	rbx_monitor_enter(&volume->events.monitor);
	count = volume->events.count;
	rbx_monitor_leave(&volume->events.monitor);
	return count;
}

/* Its thread may not wait for the program: it alone sees that the volume is another client's. */
static void callback_that_is_held_up_does_not_hold_up_the_upkeep(void **state)
{
	struct rbx_volume_status status;
	struct rbx_volume *volume;
	struct diary diary;
	uint32_t ms = 0;

	(void)state;
	volume = open_with_diary("a:1,b:1", 2, &diary);
	assert_int_equal(rbx_volume_add_server(volume, "c:1"), 0);
	RBX_STORE_RELEASE(&diary.is_held, true);
	fake_server_kill(servers[0]);
	do {
		poll_all();
		usleep(1000);
		rbx_volume_status(volume, &status);
	} while (ms++ < PATIENCE_MS && (status.servers_up != 2 || status.slabs_whole != 4));
	assert_int_equal(status.slabs_whole, 4);
	wait_event(&diary, RBX_EVENT_SERVER_DOWN, 1);
	assert_string_equal(diary.order, "D");
	/* A volume that is whole may still be about to say so. */
	while (queued_count(volume) != 2) {
		poll_all();
		usleep(1000);
	}
	RBX_STORE_RELEASE(&diary.is_held, false);
	rbx_volume_close(volume);
	assert_string_equal(diary.order, "DSF"); /* all are told before it is closed */
}

static void server_dies_in_mid_write_write_succeeds_on_the_other(void **state)
{
	static uint8_t in[CELL_BYTES], out[CELL_BYTES];
	struct rbx_volume *volume = open_volume("a:1,b:1", 2, 0);
	struct job job = job_make(RBX_WRITE, in, CELL_BYTES, 0);

	(void)state;
	memset(in, 3, sizeof(in));
	assert_int_equal(job_submit(volume, &job), 0);
	fake_server_kill(servers[1]);
	poll_all();
	assert_int_equal(job.completed_count, 1);
	assert_int_equal(job.request.status, 0);
	assert_int_equal(rbx_read(volume, out, sizeof(out), 0), 0);
	assert_memory_equal(in, out, sizeof(in));
	rbx_volume_close(volume);
}

static void read_from_dead_server_fails_over(void **state)
{
	static uint8_t in[VOLUME_BYTES], out[VOLUME_BYTES];
	struct rbx_volume *volume = open_volume("a:1,b:1", 2, 0);
	struct job job = job_make(RBX_READ, out, VOLUME_BYTES, 0);

	(void)state;
	fill(volume, in);
	assert_int_equal(job_submit(volume, &job), 0);
	/* Which server is read was decided by chance. */
	fake_server_kill(servers[fake_server_pending_count(servers[0]) ? 0 : 1]);
	poll_all();
	assert_int_equal(job.completed_count, 1);
	assert_int_equal(job.request.status, 0);
	assert_memory_equal(in, out, VOLUME_BYTES);
	assert_true(ctx->counters.volumes.failovers > 0);
	rbx_volume_close(volume);
}

static void last_replica_lost_and_no_server_left_requests_fail(void **state)
{
	static uint8_t buf[4096];
	struct rbx_volume_status status;
	struct rbx_volume *volume;
	struct diary diary;
	struct job job = job_make(RBX_WRITE, buf, sizeof(buf), 0);
	uint64_t fragments;

	(void)state;
	volume = open_with_diary("a:1", 1, &diary);
	fake_server_kill(servers[0]);
	wait_event(&diary, RBX_EVENT_DATA_LOST, 1);
	assert_int_equal(diary.slabs[RBX_EVENT_DATA_LOST], 4);
	fragments = fake_network_fragments_count();
	assert_int_equal(job_submit(volume, &job), 0);
	/* Never from within submit: the callback may submit again. */
	assert_int_equal(job.completed_count, 0);
	job_wait(&job);
	assert_int_equal(job.request.status, -EIO);
	assert_int_equal(rbx_read(volume, buf, sizeof(buf), SLAB_BYTES), -EIO);
	assert_non_null(strstr(rbx_last_error(), "slab 1 has lost all its replicas;"));
	assert_non_null(strstr(rbx_last_error(), "rbx_volume_add_server()"));
	assert_int_equal(fake_network_fragments_count(), fragments);
	rbx_volume_status(volume, &status);
	assert_int_equal(status.slabs_lost, 4);
	rbx_volume_close(volume);
}

static void last_replica_lost_slab_is_written_on_an_added_server(void **state)
{
	static uint8_t in[VOLUME_BYTES], out[VOLUME_BYTES];
	struct rbx_volume_status status;
	struct rbx_volume *volume;
	struct diary diary;

	(void)state;
	volume = open_with_diary("a:1", 1, &diary);
	fill(volume, in);
	rbx_volume_status(volume, &status);
	assert_int_equal(status.slabs_last, 4);
	fake_server_kill(servers[0]);
	wait_event(&diary, RBX_EVENT_DATA_LOST, 1);
	assert_int_equal(rbx_volume_add_server(volume, "b:1"), 0);
	rbx_volume_status(volume, &status);
	assert_int_equal(status.slabs_lost, 4);
	assert_int_equal(rbx_write(volume, in, CELL_BYTES, SLAB_BYTES), 0);
	assert_int_equal(rbx_read(volume, out, CELL_BYTES, SLAB_BYTES), 0);
	assert_memory_equal(in, out, CELL_BYTES);
	assert_int_equal(rbx_read(volume, out, 512, SLAB_BYTES + CELL_BYTES),
			 -EIO);
	assert_non_null(strstr(rbx_last_error(),
			       "slab 1 has lost all its replicas before"));
	assert_int_equal(rbx_read(volume, out, 512, 0), -EIO);
	rbx_volume_status(volume, &status);
	assert_int_equal(status.slabs_lost, 3);
	assert_int_equal(status.slabs_holed, 1);
	assert_int_equal(status.slabs_last, 1);
	/* All of it written it is as new. */
	fill(volume, in);
	assert_int_equal(rbx_read(volume, out, VOLUME_BYTES, 0), 0);
	assert_memory_equal(in, out, VOLUME_BYTES);
	rbx_volume_status(volume, &status);
	assert_int_equal(status.slabs_lost + status.slabs_holed, 0);
	assert_int_equal(status.slabs_whole, 4);
	rbx_volume_close(volume);
}

static void rebuild_without_server_is_told_and_added_server_ends_it(void **state)
{
	static uint8_t in[VOLUME_BYTES], out[VOLUME_BYTES];
	struct rbx_volume *volume;
	struct diary diary;

	(void)state;
	volume = open_with_diary("a:1,b:1", 2, &diary);
	fill(volume, in);
	fake_server_kill(servers[0]);
	wait_event(&diary, RBX_EVENT_REBUILD_STUCK, 1);
	assert_int_equal(diary.slabs[RBX_EVENT_REBUILD_STUCK], 4);
	assert_int_equal(rbx_volume_add_server(volume, "b:1"), -EINVAL);
	assert_int_equal(rbx_volume_add_server(volume, "nobody:1"),
			 -EHOSTUNREACH);
	assert_int_equal(rbx_volume_add_server(volume, "c:1"), 0);
	wait_event(&diary, RBX_EVENT_REBUILD_DONE, 1);
	fake_server_kill(servers[1]);
	assert_int_equal(rbx_read(volume, out, VOLUME_BYTES, 0), 0);
	assert_memory_equal(in, out, VOLUME_BYTES);
	rbx_volume_close(volume);
}

static void rebuild_without_server_says_what_the_server_said(void **state)
{
	static uint8_t in[VOLUME_BYTES];
	struct rbx_volume *volume;
	struct diary diary;

	(void)state;
	volume = open_with_diary("a:1", 1, &diary);
	assert_int_equal(rbx_volume_add_server(volume, "b:1"), 0);
	fill(volume, in);
	fake_server_set_refuse(servers[0], -ENOSPC);
	fake_server_set_refuse(servers[1], -EDQUOT);
	fake_server_evict(servers[0]);
	wait_event(&diary, RBX_EVENT_REBUILD_STUCK, 1);
	assert_string_equal(diary.reason, "b:1 refuses");
	fake_server_set_refuse(servers[1], 0);
	wait_event(&diary, RBX_EVENT_REBUILD_DONE, 1);
	rbx_volume_close(volume);
}

static void server_wants_memory_back_slabs_move(void **state)
{
	static uint8_t in[VOLUME_BYTES], out[VOLUME_BYTES];
	struct rbx_volume *volume;
	struct diary diary;
	uint32_t ms;

	(void)state;
	volume = open_with_diary("a:1", 1, &diary);
	assert_int_equal(rbx_volume_add_server(volume, "b:1"), 0);
	fill(volume, in);
	fake_server_set_refuse(servers[0], -ENOSPC);
	fake_server_evict(servers[0]);
	for (ms = 0; ms < PATIENCE_MS && fake_server_lent_count(servers[0]);
	     ms++) {
		assert_int_equal(rbx_read(volume, out, VOLUME_BYTES, 0), 0);
		assert_memory_equal(in, out, VOLUME_BYTES);
		assert_int_equal(rbx_write(volume, in + 99, 70000, 99), 0);
	}
	assert_int_equal(fake_server_lent_count(servers[0]), 0);
	assert_int_equal(fake_server_lent_count(servers[1]), 4);
	assert_int_equal(rbx_read(volume, out, VOLUME_BYTES, 0), 0);
	assert_memory_equal(in, out, VOLUME_BYTES);
	assert_int_equal(fake_network_stale_count(), 0);
	rbx_volume_close(volume);
}

static void server_revokes_memory_other_replica_serves(void **state)
{
	static uint8_t in[VOLUME_BYTES], out[VOLUME_BYTES];
	struct rbx_volume *volume;
	struct diary diary;

	(void)state;
	volume = open_with_diary("a:1,b:1,c:1", 2, &diary);
	fill(volume, in);
	fake_server_revoke(servers[0]);
	assert_int_equal(rbx_write(volume, in, VOLUME_BYTES, 0), 0);
	assert_int_equal(rbx_read(volume, out, VOLUME_BYTES, 0), 0);
	assert_memory_equal(in, out, VOLUME_BYTES);
	wait_event(&diary, RBX_EVENT_REBUILD_DONE, 1);
	rbx_volume_close(volume);
}

static void server_revokes_memory_of_idle_volume_copies_are_rebuilt(void **state)
{
	static uint8_t in[VOLUME_BYTES];
	struct rbx_volume *volume;
	struct diary diary;

	(void)state;
	volume = open_with_diary("a:1,b:1", 2, &diary);
	fill(volume, in);
	/* There is nowhere to go: both servers have a replica already. */
	fake_server_set_refuse(servers[0], -ENOSPC);
	fake_server_evict(servers[0]);
	wait_event(&diary, RBX_EVENT_REBUILD_STUCK, 1);
	/* The time is over; then there is room again, and no request. */
	fake_server_revoke(servers[0]);
	fake_server_set_refuse(servers[0], 0);
	wait_event(&diary, RBX_EVENT_REBUILD_DONE, 1);
	assert_int_equal(fake_server_lent_count(servers[0]), 4);
	rbx_volume_close(volume);
}

static void loan_not_given_back_while_disconnected_is_given_back_later(void **state)
{
	static uint8_t in[VOLUME_BYTES];
	struct rbx_volume *volume;
	struct diary diary;
	uint32_t ms;

	(void)state;
	volume = open_with_diary("a:1,b:1", 1, &diary);
	fill(volume, in);
	fake_server_set_refuse(servers[0], -ENOSPC);
	fake_server_set_keep(servers[0], -ENOTCONN);
	fake_server_evict(servers[0]);
	wait_event(&diary, RBX_EVENT_REBUILD_DONE, 1);
	assert_int_not_equal(fake_server_lent_count(servers[0]), 0);
	fake_server_set_keep(servers[0], 0);
	for (ms = 0; ms < PATIENCE_MS && fake_server_lent_count(servers[0]);
	     ms++)
		usleep(1000);
	assert_int_equal(fake_server_lent_count(servers[0]), 0);
	rbx_volume_close(volume);
}

static void close_in_mid_rebuild_gives_all_back(void **state)
{
	static uint8_t in[VOLUME_BYTES];
	struct rbx_volume *volume;
	struct diary diary;

	(void)state;
	volume = open_with_diary("a:1,b:1,c:1", 2, &diary);
	fill(volume, in);
	fake_server_kill(servers[0]);
	wait_event(&diary, RBX_EVENT_REBUILD_STARTED, 1);
	rbx_volume_close(volume);
}

/* ---- Checksums ------------------------------------------------------------*/

/* The areas of a server are lent from the first on, so slab 0 is area 0 of
 * both servers. */
static void bad_page_of_one_replica_is_read_from_the_other(void **state)
{
	static uint8_t in[VOLUME_BYTES], out[VOLUME_BYTES];
	struct rbx_volume *volume = open_volume("a:1,b:1", 2, 1);
	uint32_t i;

	(void)state;
	fill(volume, in);
	for (i = 0; i < 2; i++) {
		servers[i]->memory[CELL_BYTES * i] ^= 1;
		memset(out, 0, sizeof(out));
		assert_int_equal(rbx_read(volume, out, VOLUME_BYTES, 0), 0);
		assert_memory_equal(in, out, VOLUME_BYTES);
	}
	/* One of the two is the one that is read first. */
	assert_true(ctx->counters.volumes.checksum_errors >= 1);
	assert_int_equal(ctx->counters.volumes.failovers,
			 ctx->counters.volumes.checksum_errors);
	assert_int_equal(ctx->counters.volumes.checksum_repairs,
			 ctx->counters.volumes.checksum_errors);
	for (i = 0; i < 2; i++)
		servers[i]->memory[CELL_BYTES + 1] ^= 1;
	assert_int_equal(rbx_read(volume, out, VOLUME_BYTES, 0), -EIO);
	/* Written again, it is good again. */
	assert_int_equal(rbx_write(volume, in, 2 * CELL_BYTES, 0), 0);
	assert_int_equal(rbx_read(volume, out, VOLUME_BYTES, 0), 0);
	assert_memory_equal(in, out, VOLUME_BYTES);
	rbx_volume_close(volume);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(server_dies_copies_are_rebuilt_on_another),
		TEST(callback_that_is_held_up_does_not_hold_up_the_upkeep),
		TEST(volume_is_closed_while_a_recovery_asks_about_the_others),
		TEST(server_dies_in_mid_write_write_succeeds_on_the_other),
		TEST(read_from_dead_server_fails_over),
		TEST(last_replica_lost_and_no_server_left_requests_fail),
		TEST(last_replica_lost_slab_is_written_on_an_added_server),
		TEST(rebuild_without_server_is_told_and_added_server_ends_it),
		TEST(rebuild_without_server_says_what_the_server_said),
		TEST(server_wants_memory_back_slabs_move),
		TEST(server_revokes_memory_other_replica_serves),
		TEST(server_revokes_memory_of_idle_volume_copies_are_rebuilt),
		TEST(loan_not_given_back_while_disconnected_is_given_back_later),
		TEST(close_in_mid_rebuild_gives_all_back),
		TEST(bad_page_of_one_replica_is_read_from_the_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
