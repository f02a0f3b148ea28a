/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * crowd_test.c - many connect and say nothing; clients come and come back.
 *
 * A hostile program holds open whatever it is given, and connects again for each
 * connection that is ended. It may be an untrusted client of a server with a secret,
 * or anybody where there is none.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/clock.h"
#include "server/state.h"
#include "tests/server/raw_client.h"

#define SILENT_MAX 200
#define RESUME_MS 3000

static struct raw_client crowd[SILENT_MAX];

/* Connects as often; what is refused is tried no more. */
static void crowd_come(struct world *world, uint32_t count)
{
	const struct rbx_wire_attach control = {
		.kind = RBX_WIRE_ATTACH_CONTROL
	};
	uint8_t bytes[RBX_WIRE_ATTACH_BYTES];
	uint32_t reason, i;

	rbx_wire_attach_encode(&control, bytes);
	for (i = 0; i < count; i++)
		(void)raw_client_connect(&crowd[i], world, bytes, sizeof(bytes),
					 &reason);
}

static void crowd_go(uint32_t count)
{
	while (count > 0)
		raw_client_leave(&crowd[--count]);
}

static bool is_lost(struct world *world)
{
	return RBX_LOAD_ACQUIRE(&world->witness.lost_count) > 0;
}

/* Ends the control connections of all clients. */
static void clients_cut(struct world *world)
{
	struct rbx_server *server = world->server;
	uint32_t i;

	pthread_mutex_lock(&server->lock);
	for (i = 0; i < server->clients_used; i++)
		if (server->clients[i].connection)
			world->choice.ops->disconnect(
				server->clients[i].connection->qp);
	pthread_mutex_unlock(&server->lock);
}

static void crowd_keeps_nobody_out(uint32_t count, bool has_secret)
{
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;

	world_options(&world);
	if (has_secret)
		strcpy(world.options.secret_file,
		       world_secret_file("correct horse battery\n", 0600));
	world_start(&world);
	session = world_session(&world);
	assert_int_equal(rbx_session_map(session, &loan), 0);
	crowd_come(&world, count);
	/* At the first attempt. */
	clients_cut(&world);
	world_wait(&world, is_lost);
	assert_int_equal(rbx_session_resume(session, rbx_after_ms(RESUME_MS)), 0);
	assert_int_equal(rbx_session_check(session, &loan), 0);
	rbx_session_close(world_session(&world));
	rbx_session_close(session);
	crowd_go(count);
	world_stop(&world);
}

static void few_silent_connections_keep_nobody_out(void **state)
{
	(void)state;
	crowd_keeps_nobody_out(16, false);
	crowd_keeps_nobody_out(16, true);
}

static void many_silent_connections_keep_nobody_out(void **state)
{
	(void)state;
	crowd_keeps_nobody_out(SILENT_MAX, false);
	crowd_keeps_nobody_out(SILENT_MAX, true);
}

static void one_address_has_some_of_the_slots(void **state)
{
	struct world world;

	(void)state;
	world_begin(&world);
	crowd_come(&world, SILENT_MAX);
	pthread_mutex_lock(&world.server->lock);
	assert_in_range(world.server->untrusted.count, 1,
			RBX_HANDSHAKES_OF_SOURCE_MAX);
	pthread_mutex_unlock(&world.server->lock);
	crowd_go(SILENT_MAX);
	world_stop(&world);
}

/* Who names a session has a place of its own, and can only resume it there. */
static void named_session_is_the_one_to_resume(void **state)
{
	struct rbx_session *session;
	struct world world;
	uint32_t i;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	for (i = 0; i < 3; i++)
		raw_client_arrive_to_resume(
			&crowd[i], &world, world.server->clients[0].session_id);
	/* The latest attempt counts; it must not open a session there. */
	pthread_mutex_lock(&world.server->lock);
	assert_int_equal(world.server->resumers.count, 1);
	assert_int_equal(world.server->untrusted.count, 0);
	pthread_mutex_unlock(&world.server->lock);
	crowd[2].hello = (struct rbx_wire_message){ .type = RBX_WIRE_HELLO };
	raw_client_send(&crowd[2], &crowd[2].hello);
	raw_client_is_refused(&crowd[2], RBX_REASON_OUT_OF_TURN);
	crowd_go(3);
	rbx_session_close(session);
	world_stop(&world);
}

/* A connection of the session that is about to end is not taken for an attempt. */
static void attempt_counts_while_an_older_connection_ends(void **state)
{
	struct rbx_wire_message hello = { .type = RBX_WIRE_HELLO };
	struct raw_client first, resumed;
	struct world world;

	(void)state;
	world_begin(&world);
	raw_client_arrive(&first, &world);
	raw_client_enter(&first);
	raw_client_resume(&resumed, &first, 0);
	raw_client_arrive_to_resume(&crowd[0], &world,
				    first.welcome.welcome.session_id);
	raw_client_send(&resumed, &hello);
	raw_client_is_refused(&resumed, RBX_REASON_OUT_OF_TURN);
	raw_client_arrive_to_resume(&crowd[1], &world,
				    first.welcome.welcome.session_id);
	assert_false(raw_client_hear(&crowd[0], &hello));
	crowd_go(2);
	raw_client_leave(&resumed);
	raw_client_leave(&first);
	world_stop(&world);
}

/* Nor is that place kept for who says nothing. */
static void named_session_without_a_word_runs_out_of_time(void **state)
{
	struct rbx_session *session;
	struct world world;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	raw_client_arrive_to_resume(&crowd[0], &world,
				    world.server->clients[0].session_id);
	raw_client_is_refused(&crowd[0], RBX_REASON_TOO_SLOW);
	crowd_go(1);
	rbx_session_close(session);
	world_stop(&world);
}

/* ---- A client that is refused, and comes back. ---------------------------------*/

#define REFUSALS 8

static uint32_t connections_count(struct world *world)
{
	struct rbx_server *server = world->server;
	uint32_t i, count = 0;

	pthread_mutex_lock(&server->lock);
	for (i = 0; i < server->connections_used; i++)
		count += server->connections[i].state != RBX_CONNECTION_FREE;
	pthread_mutex_unlock(&server->lock);
	return count;
}

static uint32_t count_of(struct world *world, const struct rbx_connection_list *list)
{
	uint32_t count;

	pthread_mutex_lock(&world->server->lock);
	count = list->count;
	pthread_mutex_unlock(&world->server->lock);
	return count;
}

/* Its only client has been refused; from now on the farewell has all day. */
static bool farewell_has_begun(struct world *world)
{
	struct rbx_server *server = world->server;
	struct rbx_connection *c;

	pthread_mutex_lock(&server->lock);
	c = server->clients[0].leaving;
	if (c)
		c->deadline_ns = UINT64_MAX;
	pthread_mutex_unlock(&server->lock);
	return c != NULL;
}

/* It says what it may not, and one message of the server to it never arrives. */
static void provoke_a_farewell(struct raw_client *raw)
{
	struct rbx_wire_message hello = { .type = RBX_WIRE_HELLO };
	struct rbx_server *server = raw->world->server;

	pthread_mutex_lock(&server->lock);
	server->clients[0].connection->sends_busy |= 1u << RBX_CONTROL_SENDS_MAX;
	pthread_mutex_unlock(&server->lock);
	raw_client_send(raw, &hello);
	world_wait(raw->world, farewell_has_begun);
}

static void hear_the_farewell(struct raw_client *raw)
{
	struct rbx_wire_message message;

	assert_true(raw_client_hear(raw, &message));
	assert_int_equal(message.type, RBX_WIRE_ERROR);
	assert_int_equal(message.status, RBX_REASON_OUT_OF_TURN);
}

static void client_that_is_refused_again_and_again_has_two_places(void **state)
{
	struct world world;
	uint32_t i;

	(void)state;
	world_begin(&world);
	raw_client_arrive(&crowd[0], &world);
	raw_client_enter(&crowd[0]);
	for (i = 1; i < REFUSALS; i++) {
		provoke_a_farewell(&crowd[i - 1]);
		raw_client_resume(&crowd[i], &crowd[0], 0);
		/* The farewell had its place until now. */
		assert_int_equal(connections_count(&world), 1);
	}
	provoke_a_farewell(&crowd[i - 1]);
	assert_int_equal(count_of(&world, &world.server->resumers), 1);
	hear_the_farewell(&crowd[i - 1]);
	crowd_go(REFUSALS);
	world_stop(&world);
}

static bool a_lease_is_over(struct world *world)
{
	return world_stats(world).leases_expired > 0;
}

/* Its client's entry may be another's now, so it has the place of an untrusted
 * client. */
static void farewell_outlives_its_session_in_an_untrusted_place(void **state)
{
	struct raw_client first;
	struct world world;

	(void)state;
	world_options(&world);
	world.options.lease_ms = 500;
	world_start(&world);
	raw_client_arrive(&first, &world);
	raw_client_enter(&first);
	provoke_a_farewell(&first);
	assert_int_equal(count_of(&world, &world.server->untrusted), 0);
	world_wait(&world, a_lease_is_over);
	assert_int_equal(count_of(&world, &world.server->resumers), 0);
	assert_int_equal(count_of(&world, &world.server->untrusted), 1);
	hear_the_farewell(&first);
	raw_client_leave(&first);
	world_stop(&world);
}

static void attempt_ends_with_its_session(void **state)
{
	struct rbx_wire_message message = { .type = RBX_WIRE_BYE };
	struct raw_client first;
	struct world world;

	(void)state;
	world_begin(&world);
	raw_client_arrive(&first, &world);
	raw_client_enter(&first);
	raw_client_arrive_to_resume(&crowd[0], &world,
				    first.welcome.welcome.session_id);
	raw_client_send(&first, &message);
	/* It is not told that it was too slow. */
	assert_false(raw_client_hear(&crowd[0], &message));
	assert_int_equal(connections_count(&world), 0);
	crowd_go(1);
	raw_client_leave(&first);
	world_stop(&world);
}

/* ---- Many that mean well. ----------------------------------------------------*/

#define NEWCOMERS 80

struct newcomer {
	pthread_t thread;
	struct world *world;
	int status;
};

static void *visit(void *argument)
{
	const struct rbx_sessions_options options = {
		.device = ((struct newcomer *)argument)->world->device,
		.insecure = true,
		.silence_ms = WORLD_WAIT_MS,
	};
	const struct rbx_session_events none = { 0 };
	struct rbx_server_stats stats;
	struct newcomer *newcomer = argument;
	struct rbx_sessions *set;
	struct rbx_session *session;

	newcomer->status = rbx_sessions_open(&set, &options);
	if (newcomer->status)
		return NULL;
	newcomer->status = rbx_session_open_name(
		set, rbx_server_address(newcomer->world->server), &none,
		&session);
	if (!newcomer->status) {
		newcomer->status = rbx_session_stats(session, &stats);
		rbx_session_close(session);
	}
	rbx_sessions_close(set);
	return NULL;
}

static void many_at_once_are_all_served(void **state)
{
	static struct newcomer newcomers[NEWCOMERS];
	struct world world;
	uint32_t i;

	(void)state;
	world_begin(&world);
	for (i = 0; i < NEWCOMERS; i++) {
		newcomers[i].world = &world;
		pthread_create(&newcomers[i].thread, NULL, visit,
			       &newcomers[i]);
	}
	for (i = 0; i < NEWCOMERS; i++)
		pthread_join(newcomers[i].thread, NULL);
	for (i = 0; i < NEWCOMERS; i++)
		assert_int_equal(newcomers[i].status, 0);
	world_stop(&world);
}

/* ---- Many that are idle. -----------------------------------------------------*/

/* Sanitizers are many times as slow, and there are no more threads for more clients. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define IDLE_MAX 2000u
#else
#define IDLE_MAX 10000u
#endif
#define DESCRIPTORS_BESIDE 300u
#define IDLE_LEASE_MS 3600000u

/* A connection is a descriptor at either end, and here both are ours. */
static uint32_t idle_count(void)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < 2 * IDLE_MAX + DESCRIPTORS_BESIDE) {
		limit.rlim_max = 2 * IDLE_MAX + DESCRIPTORS_BESIDE;
		if (setrlimit(RLIMIT_NOFILE, &limit)) /* only root may */
			assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	}
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	return (uint32_t)RBX_MIN(IDLE_MAX,
				 (limit.rlim_max - DESCRIPTORS_BESIDE) / 2);
}

static void many_idle_clients_are_in_nobodys_way(void **state)
{
	const uint32_t count = idle_count();
	struct raw_client *idle = calloc(count, sizeof(*idle)), again;
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;
	uint32_t i;

	(void)state;
	print_message("%u clients\n", count);
	world_options(&world);
	world.options.clients_max = count + 1;
	world.options.lease_ms = IDLE_LEASE_MS; /* none says a word while all come */
	world_start(&world);
	raw_client_arrive(&idle[0], &world);
	raw_client_enter(&idle[0]);
	for (i = 1; i < count; i++) {
		raw_client_arrive_beside(&idle[i], &idle[0]);
		raw_client_enter(&idle[i]);
	}
	session = world_session(&world);
	assert_int_equal(world_stats(&world).clients, count + 1);
	assert_int_equal(rbx_session_map(session, &loan), 0);
	assert_int_equal(rbx_session_check(session, &loan), 0);
	/* There is no place for another one. */
	raw_client_arrive_beside(&again, &idle[0]);
	raw_client_greet(&again);
	raw_client_prove(&again, NULL);
	raw_client_is_refused(&again, RBX_REASON_TOO_MANY);
	raw_client_leave(&again);
	/* Each is found by its name. */
	raw_client_resume(&again, &idle[count / 2], 0);
	raw_client_leave(&again);
	while (i > count / 3)
		raw_client_leave(&idle[--i]);
	assert_int_equal(rbx_session_unmap(session, &loan), 0);
	rbx_session_close(session);
	while (i > 0)
		raw_client_leave(&idle[--i]);
	free(idle);
	world_stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_silent_connections_keep_nobody_out),
		cmocka_unit_test(many_silent_connections_keep_nobody_out),
		cmocka_unit_test(one_address_has_some_of_the_slots),
		cmocka_unit_test(named_session_is_the_one_to_resume),
		cmocka_unit_test(attempt_counts_while_an_older_connection_ends),
		cmocka_unit_test(named_session_without_a_word_runs_out_of_time),
		cmocka_unit_test(
			client_that_is_refused_again_and_again_has_two_places),
		cmocka_unit_test(farewell_outlives_its_session_in_an_untrusted_place),
		cmocka_unit_test(attempt_ends_with_its_session),
		cmocka_unit_test(many_at_once_are_all_served),
		cmocka_unit_test(many_idle_clients_are_in_nobodys_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
