/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * message_cable_test.c - messages and connections that break: what was said
 * arrives once and in order all the same, or its sender hears that it cannot be
 * known.
 */
#include <errno.h>
#include <unistd.h>

#include "tests/lib/cable.h"
#include "tests/lib/talk.h"
#include "wire/message.h"

/* Messages of a conversation, at least, and how often it is cut. */
#define CONVERSATION 600u
#define CUTS 12

static void messages_arrive_once_and_in_order_whatever_is_cut(void **state)
{
	struct host host;
	struct cable *cable;
	struct guest guest;
	uint64_t number = 0;
	int cuts = 0;

	(void)state;
	host_start(&host, true);
	cable = cable_lay(rbx_server_address(host.server));
	guest_open(&guest, cable_address(cable), true);
	while (number < CONVERSATION || cuts < CUTS) {
		uint64_t heard = RBX_LOAD_ACQUIRE(&guest.heard_count);
		uint64_t next = number + 1;
		int err = -EAGAIN;

		/* Room for all echoes; of what was heard the host may not know
		 * yet. */
		if (next - heard <= RBX_USER_MESSAGES_MAX / 2)
			err = rbx_message_submit(guest.peer, &next,
						 sizeof(next), guest_ended,
						 &guest);
		if (err && err != -EAGAIN)
			fail_msg("%s", rbx_last_error());
		number += !err;
		/* Sometimes with a reply on its way, sometimes with nothing. */
		if (number / (CONVERSATION / CUTS) > (uint64_t)cuts) {
			cuts++;
			cable_cut(cable);
		}
		usleep(err ? 1000 : 50 * (number % 7));
	}
	wait_count(&guest.ended_count, (uint32_t)number);
	wait_heard(&guest.heard_count, number);
	wait_count(&host.ended_count, (uint32_t)number);
	assert_int_equal(host.heard_count, number);
	assert_int_equal(guest.wrong_count + host.wrong_count, 0);
	assert_int_equal(guest.failed_count + host.failed_count, 0);
	guest_close(&guest);
	cable_remove(cable);
	rbx_server_stop(host.server);
}

static void messages_to_a_lost_peer_end_with_ehostunreach(void **state)
{
	struct host host;
	struct cable *cable;
	struct guest guest;
	uint32_t i;
	int err;

	(void)state;
	host_start(&host, true);
	cable = cable_lay(rbx_server_address(host.server));
	guest_open(&guest, cable_address(cable), true);
	cable_unplug(cable, true);
	cable_cut(cable);
	for (i = 0; i < 10; i++)
		assert_int_equal(rbx_message_submit(guest.peer, "x", 1,
						    guest_ended, &guest),
				 0);
	wait_count(&guest.ended_count, 10);
	assert_int_equal(guest.failed_status, -EHOSTUNREACH);
	assert_int_equal(guest.failed_count, 10);
	err = rbx_message_submit(guest.peer, "x", 1, guest_ended, &guest);
	assert_int_equal(err, -EHOSTUNREACH);
	assert_int_equal(rbx_message_send(guest.peer, "x", 1), -EHOSTUNREACH);
	assert_int_equal(guest.ended_count, 10);
	guest_close(&guest);
	cable_remove(cable);
	rbx_server_stop(host.server);
}

static void messages_of_a_stopped_server_end_with_ecanceled(void **state)
{
	struct host host;
	struct cable *cable;
	struct guest guest;
	uint64_t number = 1;
	uint32_t i;

	(void)state;
	host_start(&host, true);
	host.echoes = false;
	cable = cable_lay(rbx_server_address(host.server));
	guest_open(&guest, cable_address(cable), true);
	assert_int_equal(rbx_message_send(guest.peer, &number, sizeof(number)),
			 0);
	cable_hold(cable, true); /* so that none is taken before it leaves */
	for (i = 0; i < RBX_USER_MESSAGES_MAX; i++)
		assert_int_equal(rbx_server_message_submit(host.server,
							   host.client, "x", 1,
							   host_ended, &host),
				 0);
	assert_int_equal(rbx_server_message_submit(host.server, host.client,
						   "x", 1, host_ended, &host),
			 -EAGAIN);
	assert_int_equal(host.ended_count, 0);
	rbx_server_stop(host.server);
	assert_int_equal(host.ended_count, RBX_USER_MESSAGES_MAX);
	assert_int_equal(host.failed_count, RBX_USER_MESSAGES_MAX);
	assert_int_equal(host.failed_status, -ECANCELED);
	cable_hold(cable, false);
	guest_close(&guest);
	cable_remove(cable);
}

/* The client has nothing to say, and hears what was said while it was away. */
static void messages_of_the_server_reach_a_client_that_was_away(void **state)
{
	struct host host;
	struct cable *cable;
	struct guest guest;
	uint64_t number = 1;
	int cuts;

	(void)state;
	host_start(&host, true);
	cable = cable_lay(rbx_server_address(host.server));
	guest_open(&guest, cable_address(cable), true);
	assert_int_equal(rbx_message_send(guest.peer, &number, sizeof(number)),
			 0);
	wait_heard(&guest.heard_count, number);
	for (cuts = 0; cuts < 5; cuts++) {
		uint64_t until = number + 2 * RBX_WIRE_USER_MESSAGES_MAX;

		cable_cut(cable);
		while (number < until) {
			number++;
			assert_int_equal(rbx_server_message_submit(
						 host.server, host.client,
						 &number, sizeof(number),
						 host_ended, &host),
					 0);
		}
		wait_heard(&guest.heard_count, number);
	}
	wait_count(&host.ended_count, (uint32_t)number);
	assert_int_equal(guest.wrong_count + host.failed_count, 0);
	guest_close(&guest);
	cable_remove(cable);
	rbx_server_stop(host.server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			messages_arrive_once_and_in_order_whatever_is_cut),
		cmocka_unit_test(messages_to_a_lost_peer_end_with_ehostunreach),
		cmocka_unit_test(
			messages_of_a_stopped_server_end_with_ecanceled),
		cmocka_unit_test(
			messages_of_the_server_reach_a_client_that_was_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
