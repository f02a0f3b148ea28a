/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * server_test.c - a server and well-behaved clients: who gets in, what is lent,
 * what is in it, and the limits.
 */
#include <errno.h>
#include <string.h>

#include "client/session_state.h"
#include "tests/server/world.h"

/* ---- Who gets in -----------------------------------------------------------*/

static void hello_without_secret_is_welcomed(void **state)
{
	struct rbx_session *session;
	struct world world;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	assert_int_equal(rbx_session_slab_bytes(session), WORLD_SLAB_BYTES);
	assert_int_equal(rbx_session_free_bytes(session), 4 * WORLD_SLAB_BYTES);
	assert_int_equal(session->borrower.welcome.lease_ms, world.options.lease_ms);
	assert_int_equal(world_stats(&world).clients, 1);
	rbx_session_close(session);
	assert_int_equal(world_stats(&world).clients, 0);
	world_stop(&world);
}

static void hello_with_the_same_secret_is_welcomed(void **state)
{
	struct rbx_session *session;
	struct world world;

	(void)state;
	world_options(&world);
	strcpy(world.options.secret_file,
	       world_secret_file("correct horse battery staple\n", 0600));
	world_start(&world);
	session = world_session(&world);
	rbx_session_close(session);
	world_stop(&world);
}

static void labels_are_told_to_clients(void **state)
{
	struct rbx_server_options changed;
	struct rbx_session *session;
	struct world world;

	(void)state;
	world_options(&world);
	strcpy(world.options.labels, "rack=7,zone=b");
	world_start(&world);
	session = world_session(&world);
	assert_string_equal(rbx_session_labels(session), "rack=7,zone=b");
	rbx_session_close(session);
	changed = world.options;
	strcpy(changed.labels, "rack=8");
	assert_int_equal(rbx_server_reload(world.server, &changed), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "labels (--label)"));
	world_stop(&world);
}

static void labels_that_are_none_are_refused(void **state)
{
	struct rbx_server_options options;
	struct rbx_server *server;

	(void)state;
	rbx_server_options_defaults(&options);
	strcpy(options.listen, "127.0.0.1:0");
	strcpy(options.labels, "rack");
	assert_int_equal(rbx_server_start(&server, &options), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "labels \"rack\": give NAME=VALUE"));
	memset(options.labels, 'x', sizeof(options.labels));
	assert_int_equal(rbx_server_start(&server, &options), -EINVAL);
}

static int open_error(struct world *world, const struct rbx_secret *secret)
{
	const struct rbx_session_events events = { 0 };
	const struct rbx_sessions_options options = {
		.device = world->device,
		.secret = secret,
		.insecure = true,
		.silence_ms = 5000,
	};
	struct rbx_session *session;
	struct rbx_sessions *set;
	int err;

	assert_int_equal(rbx_sessions_open(&set, &options), 0);
	err = rbx_session_open_name(set, rbx_server_address(world->server), &events,
				    &session);
	print_message("open: %d: %s\n", err, rbx_last_error());
	rbx_sessions_close(set);
	return err;
}

static void hello_with_another_secret_is_refused(void **state)
{
	struct rbx_session *session;
	struct rbx_secret other;
	struct world world;

	(void)state;
	world_options(&world);
	strcpy(world.options.secret_file,
	       world_secret_file("correct horse battery staple\n", 0600));
	world_start(&world);
	other = *world.secret;
	other.bytes[3] ^= 1;
	assert_int_equal(open_error(&world, &other), -EACCES);
	assert_non_null(strstr(rbx_last_error(), "secret is wrong"));
	assert_int_equal(open_error(&world, NULL), -EACCES);
	assert_non_null(strstr(rbx_last_error(), "requires a secret"));
	assert_int_equal(world_stats(&world).refused_auth, 2);
	assert_int_equal(world_stats(&world).sessions, 0);
	session = world_session(&world); /* it serves on */
	rbx_session_close(session);
	world_stop(&world);
}

static void hello_with_secret_to_a_server_without_is_refused(void **state)
{
	struct rbx_secret secret = { .length_bytes = 20 };
	struct world world;

	(void)state;
	world_begin(&world);
	assert_int_equal(open_error(&world, &secret), -EACCES);
	assert_non_null(strstr(rbx_last_error(), "no secret to prove"));
	world_stop(&world);
}

/* ---- Slabs and data ---------------------------------------------------------*/

static void slab_holds_what_was_written(void **state)
{
	struct rbx_session *session;
	struct rbx_loan loan;
	struct rbx_qp *qp;
	struct world world;
	uint32_t i;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	assert_int_equal(rbx_session_map(session, &loan), 0);
	qp = world_qp(&world, session);
	for (i = 0; i < WORLD_SLAB_BYTES; i++)
		world.memory[i] = (uint8_t)(i * 7 + i / 256);
	assert_int_equal(world_transfer(&world, qp, RBX_OP_WRITE, &loan), 0);
	memset(world.memory, 0xee, WORLD_SLAB_BYTES);
	assert_int_equal(world_transfer(&world, qp, RBX_OP_READ, &loan), 0);
	for (i = 0; i < WORLD_SLAB_BYTES; i++)
		assert_int_equal(world.memory[i], (uint8_t)(i * 7 + i / 256));
	assert_int_equal(rbx_session_check(session, &loan), 0);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(session);
	world_stop(&world);
}

static void slab_is_zero_for_the_next_client(void **state)
{
	struct rbx_session *first, *second;
	struct rbx_loan loans[4];
	struct rbx_qp *qp;
	struct world world;
	uint32_t i, k;

	(void)state;
	world_begin(&world);
	first = world_session(&world);
	qp = world_qp(&world, first);
	memset(world.memory, 0x5a, WORLD_SLAB_BYTES);
	for (i = 0; i < 4; i++) {
		assert_int_equal(rbx_session_map(first, &loans[i]), 0);
		assert_int_equal(
			world_transfer(&world, qp, RBX_OP_WRITE, &loans[i]), 0);
	}
	for (i = 0; i < 4; i++)
		assert_int_equal(rbx_session_unmap(first, &loans[i]), 0);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(first);

	second = world_session(&world);
	qp = world_qp(&world, second);
	for (i = 0; i < 4; i++) {
		assert_int_equal(rbx_session_map(second, &loans[i]), 0);
		assert_int_equal(world_transfer(&world, qp, RBX_OP_READ,
						&loans[i]),
				 0);
		for (k = 0; k < WORLD_SLAB_BYTES; k++)
			assert_int_equal(world.memory[k], 0);
	}
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(second);
	world_stop(&world);
}

static void unmap_ends_the_access(void **state)
{
	struct rbx_loan loan, other;
	struct rbx_session *session;
	struct rbx_qp *qp;
	struct world world;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	assert_int_equal(rbx_session_map(session, &loan), 0);
	assert_int_equal(rbx_session_map(session, &other), 0);
	qp = world_qp(&world, session);
	assert_int_equal(world_transfer(&world, qp, RBX_OP_WRITE, &loan), 0);
	assert_int_equal(rbx_session_unmap(session, &loan), 0);
	assert_int_equal(world_transfer(&world, qp, RBX_OP_READ, &loan),
			 -EACCES);
	world.choice.ops->destroy_qp(qp);
	/* A violation ends the queue pair, not the session. */
	qp = world_qp(&world, session);
	assert_int_equal(world_transfer(&world, qp, RBX_OP_READ, &other), 0);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(session);
	world_stop(&world);
}

static void unmap_twice_or_of_anothers_slab_is_refused(void **state)
{
	struct rbx_session *one, *two;
	struct rbx_loan loan, again;
	struct world world;

	(void)state;
	world_begin(&world);
	one = world_session(&world);
	two = world_session(&world);
	assert_int_equal(rbx_session_map(one, &loan), 0);
	assert_int_equal(rbx_session_unmap(two, &loan), -EPERM);
	assert_int_equal(rbx_session_check(two, &loan), -EPERM);
	assert_int_equal(rbx_session_check(one, &loan), 0);
	assert_int_equal(rbx_session_unmap(one, &loan), 0);
	assert_int_equal(rbx_session_unmap(one, &loan), -EPERM);
	/* The same slab again, in another epoch, once the others had their turn. */
	while (!rbx_session_map(one, &again) && again.slab_id != loan.slab_id)
		assert_int_equal(rbx_session_unmap(one, &again), 0);
	assert_int_equal(again.slab_id, loan.slab_id);
	assert_true(again.epoch > loan.epoch);
	assert_int_equal(rbx_session_unmap(one, &loan), -ESTALE);
	assert_int_equal(rbx_session_check(one, &again), 0);
	again.slab_id = UINT64_MAX;
	assert_int_equal(rbx_session_unmap(one, &again), -EPERM);
	rbx_session_close(one);
	rbx_session_close(two);
	world_stop(&world);
}

static void key_of_anothers_slab_is_refused(void **state)
{
	struct rbx_session *owner, *thief;
	struct rbx_loan owned, borrowed;
	struct rbx_qp *owner_qp, *thief_qp;
	struct world world;

	(void)state;
	world_begin(&world);
	owner = world_session(&world);
	thief = world_session(&world);
	owner_qp = world_qp(&world, owner);
	thief_qp = world_qp(&world, thief);
	assert_int_equal(rbx_session_map(owner, &owned), 0);
	assert_int_equal(rbx_session_map(thief, &borrowed), 0);
	memset(world.memory, 0x55, WORLD_SLAB_BYTES);
	assert_int_equal(world_transfer(&world, owner_qp, RBX_OP_WRITE,
					&owned), 0);
	memset(world.memory, 0, WORLD_SLAB_BYTES);
	assert_int_equal(world_transfer(&world, thief_qp, RBX_OP_READ,
					&borrowed), 0);
	/* It knows address and key, and that is not enough. */
	assert_int_equal(world_transfer(&world, thief_qp, RBX_OP_READ, &owned),
			 -EACCES);
	assert_int_equal(world.memory[0], 0);
	assert_int_equal(world_transfer(&world, owner_qp, RBX_OP_READ, &owned),
			 0);
	assert_int_equal(world.memory[WORLD_SLAB_BYTES - 1], 0x55);
	world.choice.ops->destroy_qp(owner_qp);
	world.choice.ops->destroy_qp(thief_qp);
	rbx_session_close(owner);
	rbx_session_close(thief);
	world_stop(&world);
}

static void map_beyond_the_memory_is_refused(void **state)
{
	struct rbx_session *session;
	struct rbx_loan loans[5];
	struct world world;
	int i;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	for (i = 0; i < 4; i++)
		assert_int_equal(rbx_session_map(session, &loans[i]), 0);
	assert_int_equal(rbx_session_free_bytes(session), 0);
	assert_int_equal(rbx_session_map(session, &loans[4]), -ENOSPC);
	assert_int_equal(world_stats(&world).refused_full, 1);
	assert_int_equal(rbx_session_unmap(session, &loans[2]), 0);
	assert_int_equal(rbx_session_free_bytes(session), WORLD_SLAB_BYTES);
	assert_int_equal(rbx_session_map(session, &loans[4]), 0);
	assert_int_equal(world_stats(&world).slabs_lent, 4);
	rbx_session_close(session);
	assert_int_equal(world_stats(&world).slabs_lent, 0);
	world_stop(&world);
}

static void map_beyond_the_quota_is_refused(void **state)
{
	struct rbx_session *one, *two;
	struct rbx_loan loan;
	struct world world;

	(void)state;
	world_options(&world);
	world.options.quota_bytes = 2 * WORLD_SLAB_BYTES;
	world_start(&world);
	one = world_session(&world);
	two = world_session(&world);
	assert_int_equal(rbx_session_map(one, &loan), 0);
	assert_int_equal(rbx_session_map(two, &loan), 0);
	assert_int_equal(rbx_session_map(one, &loan), -EDQUOT);
	assert_int_equal(rbx_session_map(two, &loan), -EDQUOT);
	assert_int_equal(world_stats(&world).refused_quota, 2);
	/* It waits until the slabs of the other session have ended. */
	rbx_session_close(one);
	assert_int_equal(rbx_session_map(two, &loan), 0);
	one = world_session(&world);
	rbx_session_close(one);
	rbx_session_close(two);
	world_stop(&world);
}

/* ---- Numbers ----------------------------------------------------------------*/

static void stats_travel_whole(void **state)
{
	struct rbx_server_stats far;
	struct rbx_server_stats near;
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	assert_int_equal(rbx_session_map(session, &loan), 0);
	assert_int_equal(rbx_session_stats(session, &far), 0);
	near = world_stats(&world);
	far.uptime_s = near.uptime_s;
	far.heartbeats = near.heartbeats;
	assert_memory_equal(&far, &near, sizeof(far));
	assert_int_equal(far.lent_bytes, WORLD_SLAB_BYTES);
	rbx_session_close(session);
	world_stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello_without_secret_is_welcomed),
		cmocka_unit_test(hello_with_the_same_secret_is_welcomed),
		cmocka_unit_test(labels_are_told_to_clients),
		cmocka_unit_test(labels_that_are_none_are_refused),
		cmocka_unit_test(hello_with_another_secret_is_refused),
		cmocka_unit_test(
			hello_with_secret_to_a_server_without_is_refused),
		cmocka_unit_test(slab_holds_what_was_written),
		cmocka_unit_test(slab_is_zero_for_the_next_client),
		cmocka_unit_test(unmap_ends_the_access),
		cmocka_unit_test(unmap_twice_or_of_anothers_slab_is_refused),
		cmocka_unit_test(key_of_anothers_slab_is_refused),
		cmocka_unit_test(map_beyond_the_memory_is_refused),
		cmocka_unit_test(map_beyond_the_quota_is_refused),
		cmocka_unit_test(stats_travel_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
