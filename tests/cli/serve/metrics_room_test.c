/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* metrics_room_test.c - who has to go if all connections for metrics are taken. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/serve/metrics_room.h"

#define PAIRS_MAX 128

/* A connection is one end of a pair of sockets; the other end sees the shutdown. */
static struct metrics_room room;
static int ends[PAIRS_MAX][2];
static int pairs_count;

static int enter(const char *address)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr *from = (struct sockaddr *)&v6;

	assert_true(pairs_count < PAIRS_MAX);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
				    ends[pairs_count]), 0);
	if (inet_pton(AF_INET, address, &v4.sin_addr) == 1)
		from = (struct sockaddr *)&v4;
	else
		assert_int_equal(inet_pton(AF_INET6, address, &v6.sin6_addr), 1);
	metrics_room_enter(&room, ends[pairs_count][0], from);
	return pairs_count++;
}

/* In one direction or both: one that can still write keeps its place in the server. */
static bool is_open(int pair)
{
	bool can_write = send(ends[pair][1], "", 1, MSG_NOSIGNAL) == 1;
	char byte;

	return (recv(ends[pair][1], &byte, 1, 0) < 0 && errno == EAGAIN) || can_write;
}

static int setup(void **state)
{
	(void)state;
	memset(&room, 0, sizeof(room));
	pairs_count = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i < pairs_count; i++) {
		close(ends[i][0]);
		close(ends[i][1]);
	}
	return 0;
}

/* Enters twice as many as there are places, each from another address. */
static void crowd(const char *before, const char *after)
{
	char address[64];

	for (int i = 1; i <= 2 * METRICS_CONNECTIONS_MAX; i++) {
		snprintf(address, sizeof(address), "%s%d%s", before, i, after);
		enter(address);
	}
	assert_int_equal(room.count, METRICS_CONNECTIONS_MAX);
}

/* One who comes to a crowd gets a place, and keeps it while more of them come. */
static void assert_stays(const char *scraper, const char *before,
			 const char *after)
{
	int pair = enter(scraper);

	assert_true(is_open(pair));
	crowd(before, after);
	assert_true(is_open(pair));
}

static void addresses_of_one_v6_prefix_are_one_host(void **state)
{
	(void)state;
	crowd("2001:db8:0:1::", "");
	assert_stays("2001:db8:0:2::1", "2001:db8:0:1::", "");
}

static void prefixes_of_one_v6_network_leave_others_a_place(void **state)
{
	(void)state;
	crowd("2001:db8:0:", "::1");
	assert_stays("2001:db8:1::1", "2001:db8:0:", "::1");
	assert_stays("192.0.2.1", "2001:db8:0:", "::1");
}

static void addresses_of_one_v4_network_leave_others_a_place(void **state)
{
	(void)state;
	crowd("192.0.2.", "");
	assert_stays("198.51.100.1", "192.0.2.", "");
	assert_stays("2001:db8::1", "192.0.2.", "");
}

static void v4_addresses_on_a_v6_socket_are_v4(void **state)
{
	(void)state;
	crowd("::ffff:192.0.2.", "");
	assert_stays("::ffff:198.51.100.1", "::ffff:192.0.2.", "");
}

/* In a network that several share, the host with most of them loses one. */
static void host_with_most_in_its_network_loses_one(void **state)
{
	int first, other;

	(void)state;
	other = enter("192.0.2.7");
	first = enter("192.0.2.8");
	while (room.count < METRICS_CONNECTIONS_MAX)
		enter("192.0.2.8");
	enter("198.51.100.1");
	assert_true(is_open(other));
	assert_false(is_open(first));
	assert_int_equal(room.count, METRICS_CONNECTIONS_MAX);
}

static void one_that_has_ended_makes_room(void **state)
{
	int first;

	(void)state;
	first = enter("192.0.2.1");
	while (room.count < METRICS_CONNECTIONS_MAX)
		enter("192.0.2.1");
	metrics_room_leave(&room, ends[5][0]);
	enter("192.0.2.1");
	assert_true(is_open(first));
	enter("192.0.2.1");
	assert_false(is_open(first));
}

/* That of each pair of the list, in this order, and no other. */
static void assert_room_has(const int *pairs, uint32_t count)
{
	assert_int_equal(room.count, count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(room.visits[i].fd, ends[pairs[i]][0]);
}

static void one_that_leaves_or_is_ended_takes_no_other_along(void **state)
{
	int pairs[METRICS_CONNECTIONS_MAX + 1];
	uint32_t count = METRICS_CONNECTIONS_MAX;

	(void)state;
	for (uint32_t i = 0; i <= count; i++)
		pairs[i] = enter("192.0.2.1");
	assert_room_has(pairs + 1, count);
	metrics_room_leave(&room, ends[pairs[2]][0]);
	pairs[2] = pairs[1];
	assert_room_has(pairs + 2, count - 1);
	metrics_room_leave(&room, ends[pairs[count]][0]);
	assert_room_has(pairs + 2, count - 2);
	metrics_room_leave(&room, ends[pairs[count]][0]); /* has left already */
	assert_room_has(pairs + 2, count - 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(addresses_of_one_v6_prefix_are_one_host),
		TEST(prefixes_of_one_v6_network_leave_others_a_place),
		TEST(addresses_of_one_v4_network_leave_others_a_place),
		TEST(v4_addresses_on_a_v6_socket_are_v4),
		TEST(host_with_most_in_its_network_loses_one),
		TEST(one_that_has_ended_makes_room),
		TEST(one_that_leaves_or_is_ended_takes_no_other_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
