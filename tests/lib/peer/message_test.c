/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * message_test.c - what two programs say to each other arrives once and in
 * order, and each message ends once. (message_cable_test.c breaks connections.)
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/talk.h"

/* ---- A connection that holds -----------------------------------------------*/

static void message_is_heard_and_answered(void **state)
{
	struct guest guest;
	struct host host;
	uint64_t number;

	(void)state;
	host_start(&host, true);
	guest_open(&guest, rbx_server_address(host.server), true);
	for (number = 1; number <= 200; number++)
		if (rbx_message_send(guest.peer, &number, sizeof(number)))
			fail_msg("%s", rbx_last_error());
	/* It was heard before the call returned. */
	assert_int_equal(host.heard_count, 200);
	wait_heard(&guest.heard_count, 200);
	wait_count(&host.ended_count, 200);
	assert_int_equal(guest.wrong_count + host.wrong_count, 0);
	assert_int_equal(host.failed_count, 0);
	assert_int_equal(guest.nested_status, -EDEADLK);
	assert_int_equal(tenant_stats(guest.ctx).messages_sent, 200);
	assert_int_equal(tenant_stats(guest.ctx).messages_received, 200);
	guest_close(&guest);
	rbx_server_stop(host.server);
}

static size_t whole_length;
static uint8_t whole[RBX_MESSAGE_BYTES_MAX];

static void hear_whole(struct rbx_server *server, uint64_t client,
		       const void *data, size_t length, void *user)
{
	(void)server;
	(void)client;
	(void)user;
	memcpy(whole, data, length);
	whole_length = length;
}

static void message_of_each_length_arrives_whole(void **state)
{
	uint8_t data[RBX_MESSAGE_BYTES_MAX + 1];
	struct rbx_server_options options;
	struct rbx_server *server;
	struct guest guest;
	size_t length;

	(void)state;
	tenant_server_options(&options);
	options.message = hear_whole;
	assert_int_equal(rbx_server_start(&server, &options), 0);
	guest_open(&guest, rbx_server_address(server), false);
	tenant_fill(data, sizeof(data), 3);
	for (length = 0; length <= RBX_MESSAGE_BYTES_MAX; length++) {
		assert_int_equal(rbx_message_send(guest.peer, data, length), 0);
		assert_int_equal(whole_length, length);
		assert_memory_equal(whole, data, length);
	}
	assert_int_equal(rbx_message_send(guest.peer, data, length), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "at most 176 fit"));
	guest_close(&guest);
	rbx_server_stop(server);
}

static void arguments_that_are_not_allowed_are_einval(void **state)
{
	static const char text[RBX_MESSAGE_BYTES_MAX + 1];
	struct guest guest;
	struct host host;

	(void)state;
	host_start(&host, true);
	guest_open(&guest, rbx_server_address(host.server), false);
	assert_int_equal(rbx_message_send(NULL, "x", 1), -EINVAL);
	assert_int_equal(rbx_message_send(guest.peer, NULL, 1), -EINVAL);
	assert_int_equal(rbx_message_submit(guest.peer, text, sizeof(text),
					    NULL, NULL),
			 -EINVAL);
	assert_int_equal(rbx_peer_on_message(guest.peer, NULL, NULL), -EINVAL);
	assert_int_equal(rbx_peer_on_message(guest.peer, guest_heard, &guest),
			 0);
	assert_int_equal(rbx_peer_on_message(guest.peer, guest_heard, &guest),
			 -EBUSY);
	assert_int_equal(rbx_server_message_submit(host.server, 1, text,
						   sizeof(text), NULL, NULL),
			 -EINVAL);
	assert_int_equal(rbx_server_message_submit(host.server, 1, "x", 1, NULL,
						   NULL),
			 -ENOENT);
	guest_close(&guest);
	rbx_server_stop(host.server);
}

static void message_that_nobody_hears_ends_with_eopnotsupp(void **state)
{
	uint64_t number = 1;
	struct guest guest;
	struct host host;

	(void)state;
	host_start(&host, false);
	guest_open(&guest, rbx_server_address(host.server), true);
	assert_int_equal(rbx_message_send(guest.peer, "x", 1), -EOPNOTSUPP);
	guest_close(&guest);
	rbx_server_stop(host.server);

	host_start(&host, true);
	guest_open(&guest, rbx_server_address(host.server), false);
	assert_int_equal(rbx_message_send(guest.peer, &number, sizeof(number)),
			 0);
	wait_count(&host.ended_count, 1);
	assert_int_equal(host.failed_status, -EOPNOTSUPP);
	/* Too late: what was said is gone. */
	assert_int_equal(rbx_peer_on_message(guest.peer, guest_heard, &guest),
			 -EBUSY);
	guest_close(&guest);
	rbx_server_stop(host.server);
}

static void more_than_the_queue_holds_is_eagain_and_nothing_is_lost(void **state)
{
	uint64_t number = 0;
	struct guest guest;
	struct host host;
	uint32_t sent;
	int err;

	(void)state;
	host_start(&host, true);
	host.waits = true;
	guest_open(&guest, rbx_server_address(host.server), true);
	do {
		number++;
		err = rbx_message_submit(guest.peer, &number, sizeof(number),
					 guest_ended, &guest);
	} while (!err);
	assert_int_equal(err, -EAGAIN);
	sent = (uint32_t)number - 1;
	assert_int_equal(sent, RBX_USER_MESSAGES_MAX);
	assert_int_equal(guest.ended_count, 0);
	while (RBX_LOAD_ACQUIRE(&guest.ended_count) < sent) {
		sem_post(&host.go_on);
		usleep(1000);
	}
	wait_heard(&guest.heard_count, sent);
	assert_int_equal(guest.failed_count, 0);
	assert_int_equal(host.heard_count, sent);
	assert_int_equal(guest.wrong_count + host.wrong_count, 0);
	guest_close(&guest);
	rbx_server_stop(host.server);
}

/* ---- Those who go --------------------------------------------------------------*/

static void messages_of_a_closed_peer_end_with_ecanceled(void **state)
{
	struct guest guest;
	struct host host;
	uint64_t number;

	(void)state;
	host_start(&host, true);
	host.waits = true;
	guest_open(&guest, rbx_server_address(host.server), true);
	for (number = 1; number <= 10; number++)
		assert_int_equal(rbx_message_submit(guest.peer, &number,
						    sizeof(number), guest_ended,
						    &guest),
				 0);
	wait_heard(&host.heard_count, 1);
	guest_close(&guest);
	assert_int_equal(guest.ended_count, 10);
	assert_int_equal(guest.failed_status, -ECANCELED);
	for (number = 1; number <= 10; number++)
		sem_post(&host.go_on);
	rbx_server_stop(host.server);
}

static void messages_to_a_client_after_its_bye_are_enoent(void **state)
{
	struct guest guest;
	struct host host;
	uint64_t number = 1;
	int err;

	(void)state;
	host_start(&host, true);
	guest_open(&guest, rbx_server_address(host.server), true);
	assert_int_equal(rbx_message_send(guest.peer, &number, sizeof(number)),
			 0);
	guest_close(&guest);
	/* Its end has been seen: bye waits for it. */
	err = rbx_server_message_submit(host.server, host.client, "x", 1,
					host_ended, &host);
	assert_int_equal(err, -ENOENT);
	wait_count(&host.ended_count, 1); /* the echo, heard or not */
	assert_true(!host.failed_count || host.failed_status == -EHOSTUNREACH);
	rbx_server_stop(host.server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_is_heard_and_answered),
		cmocka_unit_test(message_of_each_length_arrives_whole),
		cmocka_unit_test(arguments_that_are_not_allowed_are_einval),
		cmocka_unit_test(
			message_that_nobody_hears_ends_with_eopnotsupp),
		cmocka_unit_test(
			more_than_the_queue_holds_is_eagain_and_nothing_is_lost),
		cmocka_unit_test(messages_of_a_closed_peer_end_with_ecanceled),
		cmocka_unit_test(messages_to_a_client_after_its_bye_are_enoent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
