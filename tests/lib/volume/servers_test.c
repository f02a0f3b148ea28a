/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * servers_test.c - a volume on many memory servers: named at the beginning, and
 * lost and added one after another, for longer than its table of them is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/volume/volume.h"
#include "tests/lib/fake_volume.h"

#define MANY 100u

/* "s0:1,s1:1,..." */
static char *names_of(uint32_t count)
{
	char *list = malloc(count * 12), *end = list;

	for (uint32_t i = 0; i < count; i++)
		end += sprintf(end, "%ss%u:1", i ? "," : "", i);
	return list;
}

static struct fake_server *start_with(uint32_t number, uint32_t slabs)
{
	char name[12];

	snprintf(name, sizeof(name), "s%u:1", number);
	return fake_server_start(name, SLAB_BYTES, slabs);
}

static struct fake_server *start(uint32_t number)
{
	return start_with(number, 4);
}

/* The first ones have nothing to lend. */
static void volume_on_a_hundred_servers_uses_those_that_have_room(void **state)
{
	static uint8_t in[VOLUME_BYTES], out[VOLUME_BYTES];
	struct rbx_volume_status status;
	struct fake_server *all[MANY];
	struct rbx_volume *volume;
	uint32_t i, lent_count = 0;
	char *names = names_of(MANY);

	(void)state;
	for (i = 0; i < MANY; i++)
		all[i] = start_with(i, i < 64 ? 0 : 4);
	volume = open_volume(names, 3, 0);
	rbx_volume_status(volume, &status);
	assert_int_equal(status.servers_up, MANY);
	for (i = 64; i < MANY; i++)
		lent_count += fake_server_lent_count(all[i]);
	assert_int_equal(lent_count, 3 * VOLUME_BYTES / SLAB_BYTES);
	fill(volume, in);
	assert_int_equal(rbx_read(volume, out, VOLUME_BYTES, 0), 0);
	assert_memory_equal(in, out, VOLUME_BYTES);
	rbx_volume_close(volume);
	for (i = 0; i < MANY; i++) {
		assert_int_equal(fake_server_lent_count(all[i]), 0);
		assert_int_equal(all[i]->sessions_count, 0);
	}
	free(names);
}

static void more_servers_than_a_volume_may_have_are_refused(void **state)
{
	char *names = names_of(RBX_SERVERS_MAX + 1);
	struct rbx_volume *volume;

	(void)state;
	assert_int_equal(rbx_volume_open(ctx, &volume, names, VOLUME_BYTES, NULL),
			 -EINVAL);
	assert_string_equal(rbx_last_error(), "more than 1024 servers are given");
	/* One fewer, and the first of them is asked. */
	*strrchr(names, ',') = '\0';
	assert_int_equal(rbx_volume_open(ctx, &volume, names, VOLUME_BYTES, NULL),
			 -EHOSTUNREACH);
	free(names);
}

static void one_of_many_is_not_there_nothing_stays_open(void **state)
{
	struct fake_server *all[20];
	struct rbx_volume *volume;
	char *names = names_of(21);
	uint32_t i;

	(void)state;
	for (i = 0; i < 20; i++)
		all[i] = start(i < 7 ? i : i + 1); /* s7 is not there */
	assert_int_equal(rbx_volume_open(ctx, &volume, names, VOLUME_BYTES, NULL),
			 -EHOSTUNREACH);
	assert_non_null(strstr(rbx_last_error(), "s7:1"));
	for (i = 0; i < 20; i++)
		assert_int_equal(all[i]->sessions_count, 0);
	free(names);
}

static uint32_t down_count; /* atomic: servers whose loss was told */

static void event(struct rbx_volume *volume, const struct rbx_event *event,
		  void *user)
{
	(void)volume;
	(void)user;
	if (event->kind == RBX_EVENT_SERVER_DOWN)
		RBX_FETCH_ADD(&down_count, 1);
}

static struct rbx_volume *open_with_event(const char *list)
{
	struct rbx_volume_options options;
	struct rbx_volume *volume;

	rbx_volume_options_defaults(&options);
	options.replicas = 2;
	options.event = event;
	down_count = 0;
	assert_int_equal(rbx_volume_open(ctx, &volume, list, VOLUME_BYTES,
					 &options),
			 0);
	return volume;
}

/* So many servers are gone, and what they had is somewhere else. */
static void wait_whole(struct rbx_volume *volume, uint32_t downs)
{
	struct rbx_volume_status status;
	uint32_t ms, told_count;

	for (ms = 0; ms < PATIENCE_MS; ms++) {
		poll_all();
		/* In this order: a status from before that death has all whole. */
		told_count = RBX_LOAD_ACQUIRE(&down_count);
		rbx_volume_status(volume, &status);
		if (told_count == downs && status.slabs_whole == status.slabs)
			return;
		usleep(1000);
	}
	fail_msg("it was not rebuilt: %u of %u servers told as down, "
		 "%llu of %llu slabs whole, %u of %u servers up",
		 told_count, downs,
		 (unsigned long long)status.slabs_whole,
		 (unsigned long long)status.slabs, status.servers_up,
		 status.servers);
}

/* So many that the table was full before places were used again. */
static void servers_come_and_go_without_end_and_the_volume_heals(void **state)
{
	static uint8_t in[VOLUME_BYTES], out[VOLUME_BYTES];
	struct fake_server *last[2] = { servers[0], servers[1] };
	struct rbx_volume *volume = open_with_event("a:1,b:1");
	uint32_t i;
	char name[12];

	(void)state;
	fill(volume, in);
	for (i = 0; i < MANY; i++) {
		struct fake_server *next = start(i);

		snprintf(name, sizeof(name), "s%u:1", i);
		assert_int_equal(rbx_volume_add_server(volume, name), 0);
		fake_server_kill(last[0]);
		wait_whole(volume, i + 1);
		last[0] = last[1];
		last[1] = next;
	}
	assert_in_range(volume->control.server_count, 3, 8);
	assert_int_equal(rbx_read(volume, out, VOLUME_BYTES, 0), 0);
	assert_memory_equal(in, out, VOLUME_BYTES);
	assert_int_equal(fake_network_stale_count(), 0);
	rbx_volume_close(volume);
}

/* What is not free stays what it was: a place is given away only once. */
static void server_that_cannot_be_added_leaves_its_place_free(void **state)
{
	struct rbx_volume *volume = open_with_event("a:1,b:1,c:1");
	struct rbx_volume_status status;

	(void)state;
	fake_server_kill(servers[2]);
	wait_whole(volume, 1);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(rbx_volume_add_server(volume, "nobody:1"),
				 -EHOSTUNREACH);
	assert_int_equal(rbx_volume_add_server(volume, "d:1"), 0);
	rbx_volume_status(volume, &status);
	assert_int_equal(status.servers_up, 3);
	assert_in_range(status.servers, 3, 4);
	rbx_volume_close(volume);
}

/* All that were there are gone, so none of them says how long the slabs of the volume are. */
static void last_server_comes_again_with_other_slabs_and_is_refused(void **state)
{
	struct fake_server *only = fake_server_start("only:1", SLAB_BYTES, 4);
	struct rbx_volume *volume = open_volume("only:1", 1, 0);
	bool *is_free = &volume->control.upkeep.servers[0].is_free;
	struct rbx_volume_status status;

	(void)state;
	fake_server_kill(only);
	for (uint32_t ms = 0; ms < PATIENCE_MS && !RBX_LOAD_ACQUIRE(is_free); ms++) {
		poll_all();
		usleep(1000);
	}
	assert_true(RBX_LOAD_ACQUIRE(is_free));
	fake_server_start("other:1", 2 * SLAB_BYTES, 4);
	assert_int_equal(rbx_volume_add_server(volume, "other:1"), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "start it with that --slab"));
	rbx_volume_status(volume, &status);
	assert_int_equal(status.servers_up, 0);
	rbx_volume_close(volume);
}

static void server_whose_slabs_make_no_volume_is_named(void **state)
{
	static const uint64_t sizes[] = { RBX_SLAB_BYTES_MIN / 2,
					  2ull * RBX_SLAB_BYTES_MAX,
					  3 * RBX_SLAB_BYTES_MIN };
	struct fake_server *odd = fake_server_start("odd:1", SLAB_BYTES, 1);
	struct rbx_volume *volume;
	uint32_t i;
	char bytes[24];

	(void)state;
	for (i = 0; i < 3; i++) {
		odd->slab_bytes = sizes[i];
		assert_int_equal(rbx_volume_open(ctx, &volume, "odd:1",
						 VOLUME_BYTES, NULL),
				 -EINVAL);
		snprintf(bytes, sizeof(bytes), " %llu bytes",
			 (unsigned long long)sizes[i]);
		assert_non_null(strstr(rbx_last_error(), "odd:1"));
		assert_non_null(strstr(rbx_last_error(), bytes));
	}
	fake_server_kill(odd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(volume_on_a_hundred_servers_uses_those_that_have_room),
		TEST(more_servers_than_a_volume_may_have_are_refused),
		TEST(one_of_many_is_not_there_nothing_stays_open),
		TEST(servers_come_and_go_without_end_and_the_volume_heals),
		TEST(server_that_cannot_be_added_leaves_its_place_free),
		TEST(last_server_comes_again_with_other_slabs_and_is_refused),
		TEST(server_whose_slabs_make_no_volume_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
