/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * joins_test.c - a volume whose servers come from a file: some are missing at the
 * beginning, some come later, one is lost and comes back. One whose servers are a list, of which
 * one is lost and comes back. And what the file and the servers say of their place.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/volume/volume.h"
#include "tests/lib/fake_volume.h"

static char path[64], text[80];
static pthread_mutex_t told_lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static char told[4096]; /* lines "server left out x:1 reason" */

static void event(struct rbx_volume *volume, const struct rbx_event *event, void *user)
{
	size_t used;

	(void)volume;
	(void)user;
	pthread_mutex_lock(&told_lock);
	used = strlen(told);
	snprintf(told + used, sizeof(told) - used, "%s %s %s\n", rbx_event_name(event->kind),
		 event->server, event->reason);
	pthread_mutex_unlock(&told_lock);
}

static bool was_told(const char *what)
{
	bool was;

	pthread_mutex_lock(&told_lock);
	was = strstr(told, what);
	pthread_mutex_unlock(&told_lock);
	return was;
}

static void forget(void)
{
	pthread_mutex_lock(&told_lock);
	told[0] = '\0';
	pthread_mutex_unlock(&told_lock);
}

static void wait_told(const char *what)
{
	for (uint32_t ms = 0; ms < PATIENCE_MS; ms++) {
		poll_all();
		if (was_told(what))
			return;
		usleep(1000);
	}
	fail_msg("not told: \"%s\", but:\n%s", what, told);
}

/* The members from now on. */
static void pool_is(const char *lines)
{
	char other[80];
	FILE *file;

	snprintf(other, sizeof(other), "%s.new", path);
	file = fopen(other, "w");
	assert_non_null(file);
	fputs(lines, file);
	fclose(file);
	assert_int_equal(rename(other, path), 0);
}

static int start(void **state)
{
	strcpy(path, "/tmp/rdmabox-joins.XXXXXX");
	close(mkstemp(path));
	snprintf(text, sizeof(text), "file:%s", path);
	told[0] = '\0';
	return fake_start(state);
}

static int stop(void **state)
{
	unlink(path);
	return fake_stop(state);
}

static int open_by(struct rbx_volume **volume, const char *servers, uint32_t replicas)
{
	struct rbx_volume_options options;

	rbx_volume_options_defaults(&options);
	options.replicas = replicas;
	options.event = event;
	return rbx_volume_open(ctx, volume, servers, VOLUME_BYTES, &options);
}

static void check_data(struct rbx_volume *volume, const uint8_t *in)
{
	static uint8_t out[VOLUME_BYTES];

	assert_int_equal(rbx_read(volume, out, VOLUME_BYTES, 0), 0);
	assert_memory_equal(in, out, VOLUME_BYTES);
}

static uint32_t servers_up(struct rbx_volume *volume)
{
	struct rbx_volume_status status;

	rbx_volume_status(volume, &status);
	return status.servers_up;
}

/* The first one, whose place in the table is empty, and one in the middle. */
static void members_that_are_away_are_left_out_and_join_later(void **state)
{
	static uint8_t in[VOLUME_BYTES];
	struct rbx_volume *volume;

	(void)state;
	pool_is("x:1\na:1\ny:1\nb:1\n");
	assert_int_equal(open_by(&volume, text, 2), 0);
	assert_int_equal(servers_up(volume), 2);
	wait_told("server left out x:1 ");
	wait_told("server left out y:1 ");
	fill(volume, in);
	fake_server_start("x:1", SLAB_BYTES, 16);
	fake_server_start("y:1", SLAB_BYTES, 16);
	wait_told("server added x:1 ");
	wait_told("server added y:1 ");
	assert_int_equal(servers_up(volume), 4);
	check_data(volume, in);
	rbx_volume_close(volume);
}

static void volume_without_enough_members_is_refused(void **state)
{
	struct rbx_volume *volume;

	(void)state;
	pool_is("a:1\nx:1\n");
	assert_int_equal(open_by(&volume, text, 2), -EHOSTUNREACH);
	assert_non_null(strstr(rbx_last_error(), "1 of 2 servers of the pool can be used"));
	assert_non_null(strstr(rbx_last_error(), "x:1"));
	pool_is("a:1\n");
	assert_int_equal(open_by(&volume, text, 2), -EINVAL);
	assert_int_equal(servers[0]->sessions_count, 0);
	/* Of a list all must be there. */
	assert_int_equal(open_by(&volume, "a:1,x:1", 1), -EHOSTUNREACH);
	assert_int_equal(servers[0]->sessions_count, 0);
}

static void member_with_other_slabs_is_left_out(void **state)
{
	struct rbx_volume *volume;

	(void)state;
	fake_server_start("x:1", 2 * SLAB_BYTES, 16);
	pool_is("a:1\nx:1\nb:1\n");
	assert_int_equal(open_by(&volume, text, 2), 0);
	wait_told("server left out x:1 server x:1 lends slabs of 131072 bytes, a:1 of 65536");
	assert_int_equal(servers_up(volume), 2);
	rbx_volume_close(volume);
}

static void new_member_gets_the_copies_of_a_lost_one(void **state)
{
	static uint8_t in[VOLUME_BYTES];
	struct rbx_volume *volume;

	(void)state;
	pool_is("a:1\nb:1\n");
	assert_int_equal(open_by(&volume, text, 2), 0);
	fill(volume, in);
	pool_is("a:1\nb:1\nc:1\n");
	wait_told("server added c:1 ");
	fake_server_kill(servers[1]);
	wait_told("server down b:1 ");
	wait_told("rebuild done");
	/* What leaves the pool stays with the volume. */
	pool_is("d:1\n");
	wait_told("server added d:1 ");
	assert_int_equal(servers_up(volume), 3);
	check_data(volume, in);
	rbx_volume_close(volume);
}

static uint32_t times_told(const char *what)
{
	const char *at = told;
	uint32_t count = 0;

	pthread_mutex_lock(&told_lock);
	while ((at = strstr(at, what))) {
		at += strlen(what);
		count++;
	}
	pthread_mutex_unlock(&told_lock);
	return count;
}

static void pool_that_is_broken_is_told_once(void **state)
{
	struct rbx_volume *volume;

	(void)state;
	pool_is("a:1\nb:1\n");
	assert_int_equal(open_by(&volume, text, 2), 0);
	pool_is("a:1\nb:1\nnonsense\n");
	wait_told("pool trouble  ");
	assert_true(was_told(":3: "));
	pool_is("a:1\nb:1\nnonsense\n"); /* the same again */
	pool_is(""); /* and another one */
	wait_told("no line has a server");
	assert_int_equal(times_told(":3: "), 1);
	unlink(path);
	wait_told(strerror(ENOENT));
	pool_is("a:1\nb:1\nc:1\n");
	wait_told("pool trouble  it is over");
	wait_told("server added c:1 ");
	assert_int_equal(times_told("it is over"), 1);
	rbx_volume_close(volume);
}

static void kill_one(uint32_t server)
{
	char down[32];

	snprintf(down, sizeof(down), "server down %s ", servers[server]->address);
	fake_server_kill(servers[server]);
	wait_told(down);
}

/* At the address of one that was killed. The new one is found by its name. */
static void start_anew(uint32_t server, uint32_t slab_bytes)
{
	char address[16];

	strcpy(address, servers[server]->address);
	strcpy(servers[server]->address, "gone:1");
	servers[server] = fake_server_start(address, slab_bytes, 16);
}

static void is_lost_and_comes_back(struct rbx_volume *volume, uint32_t server, const uint8_t *in)
{
	char added[32];

	snprintf(added, sizeof(added), "server added %s ", servers[server]->address);
	kill_one(server);
	start_anew(server, SLAB_BYTES);
	wait_told(added);
	wait_told("rebuild done");
	check_data(volume, in);
	assert_int_equal(servers_up(volume), 2);
}

static void lost_member_that_serves_again_comes_back(void **state)
{
	static uint8_t in[VOLUME_BYTES];
	struct rbx_volume *volume;

	(void)state;
	pool_is("a:1\nb:1\n");
	assert_int_equal(open_by(&volume, text, 2), 0);
	fill(volume, in);
	is_lost_and_comes_back(volume, 1, in);
	rbx_volume_close(volume);
}

/* ---- A list ------------------------------------------------------------------------------- */

/* One after another, so at the end nothing is left of what was there at first. */
static void lost_servers_of_a_list_that_serve_again_come_back(void **state)
{
	static uint8_t in[VOLUME_BYTES];
	struct rbx_volume *volume;

	(void)state;
	assert_int_equal(open_by(&volume, "a:1,b:1", 2), 0);
	fill(volume, in);
	is_lost_and_comes_back(volume, 1, in);
	forget();
	is_lost_and_comes_back(volume, 0, in);
	assert_true(was_told("server added a:1 it is there again"));
	rbx_volume_close(volume);
}

static void lost_server_that_was_added_comes_back(void **state)
{
	static uint8_t in[VOLUME_BYTES];
	struct rbx_volume *volume;

	(void)state;
	assert_int_equal(open_by(&volume, "a:1,b:1", 2), 0);
	fill(volume, in);
	assert_int_equal(rbx_volume_add_server(volume, "c:1"), 0);
	kill_one(1);
	wait_told("rebuild done");
	forget();
	is_lost_and_comes_back(volume, 2, in);
	rbx_volume_close(volume);
}

/* Nobody is told how often it was tried. */
static void lost_server_that_lends_other_slabs_stays_out(void **state)
{
	struct rbx_volume *volume;

	(void)state;
	assert_int_equal(open_by(&volume, "a:1,b:1", 1), 0);
	kill_one(1);
	start_anew(1, 2 * SLAB_BYTES);
	wait_told("server left out b:1 server b:1 lends slabs of 131072 bytes, and the volume");
	assert_int_equal(servers_up(volume), 1);
	rbx_volume_close(volume);
	assert_false(was_told("server added"));
}

/* ---- Failure domains ------------------------------------------------------------------- */

static uint32_t together(struct rbx_volume *volume)
{
	struct rbx_volume_status status;

	rbx_volume_status(volume, &status);
	return status.slabs_together;
}

/* d:1 is alone in its rack, so each slab has a replica there. */
static void replicas_are_where_the_labels_of_servers_differ(void **state)
{
	struct rbx_volume *volume;

	(void)state;
	strcpy(servers[0]->labels, "rack=7");
	strcpy(servers[1]->labels, "zone=b,rack=7");
	strcpy(servers[2]->labels, "rack=7");
	strcpy(servers[3]->labels, "rack=8");
	assert_int_equal(open_by(&volume, "a:1,b:1,c:1,d:1", 2), 0);
	assert_int_equal(fake_server_lent_count(servers[3]), VOLUME_BYTES / SLAB_BYTES);
	assert_int_equal(together(volume), 0);
	rbx_volume_close(volume);
}

static void spread_says_which_label_counts(void **state)
{
	struct rbx_volume_options options;
	struct rbx_volume *volume;

	(void)state;
	strcpy(servers[0]->labels, "rack=1,zone=b");
	strcpy(servers[1]->labels, "rack=2,zone=b");
	strcpy(servers[2]->labels, "rack=3,zone=b");
	strcpy(servers[3]->labels, "rack=3,zone=c");
	rbx_volume_options_defaults(&options);
	assert_string_equal(options.spread, "rack");
	options.replicas = 2;
	strcpy(options.spread, "zone");
	assert_int_equal(rbx_volume_open(ctx, &volume, "a:1,b:1,c:1,d:1", VOLUME_BYTES,
					 &options),
			 0);
	assert_int_equal(fake_server_lent_count(servers[3]), VOLUME_BYTES / SLAB_BYTES);
	rbx_volume_close(volume);
	strcpy(options.spread, "zone=c");
	assert_int_equal(rbx_volume_open(ctx, &volume, "a:1,b:1", VOLUME_BYTES, &options),
			 -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "name of a label"));
}

/* What a server says of itself counts before that. */
static void file_labels_servers_that_say_nothing(void **state)
{
	struct rbx_volume *volume;

	(void)state;
	strcpy(servers[3]->labels, "rack=8");
	pool_is("a:1 rack=7\nb:1 rack=7\nc:1 zone=b rack=7\nd:1 rack=7\n");
	assert_int_equal(open_by(&volume, text, 2), 0);
	assert_int_equal(fake_server_lent_count(servers[3]), VOLUME_BYTES / SLAB_BYTES);
	assert_int_equal(together(volume), 0);
	rbx_volume_close(volume);
}

static void member_that_joins_is_in_the_domain_that_the_file_says(void **state)
{
	struct rbx_volume *volume;

	(void)state;
	pool_is("a:1 rack=7\nb:1 rack=8\n");
	assert_int_equal(open_by(&volume, text, 2), 0);
	pool_is("a:1 rack=7\nb:1 rack=8\nc:1 rack=7\n");
	wait_told("server added c:1 ");
	fake_server_kill(servers[1]);
	wait_told("rebuild done");
	assert_int_equal(together(volume), VOLUME_BYTES / SLAB_BYTES);
	rbx_volume_close(volume);
}

#define JOINS_TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		JOINS_TEST(members_that_are_away_are_left_out_and_join_later),
		JOINS_TEST(volume_without_enough_members_is_refused),
		JOINS_TEST(member_with_other_slabs_is_left_out),
		JOINS_TEST(new_member_gets_the_copies_of_a_lost_one),
		JOINS_TEST(pool_that_is_broken_is_told_once),
		JOINS_TEST(lost_member_that_serves_again_comes_back),
		JOINS_TEST(lost_servers_of_a_list_that_serve_again_come_back),
		JOINS_TEST(lost_server_that_was_added_comes_back),
		JOINS_TEST(lost_server_that_lends_other_slabs_stays_out),
		JOINS_TEST(replicas_are_where_the_labels_of_servers_differ),
		JOINS_TEST(spread_says_which_label_counts),
		JOINS_TEST(file_labels_servers_that_say_nothing),
		JOINS_TEST(member_that_joins_is_in_the_domain_that_the_file_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
