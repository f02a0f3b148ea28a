/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lease_test.c - how clients lose what they borrowed, and how they do not:
 * broken connections, restarts, death, leases, drains, revocation.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/clock.h"
#include "server/state.h"
#include "tests/server/world.h"

/* ---- Coming back and being gone ---------------------------------------------*/

#define RESUME_MS 3000 /* for one attempt */

static bool is_lost(struct world *world)
{
	return RBX_LOAD_ACQUIRE(&world->witness.lost_count) > 0;
}

static bool nobody_is_connected(struct world *world)
{
	return world_stats(world).clients == 0;
}

static bool nothing_is_lent(struct world *world)
{
	return world_stats(world).slabs_lent == 0;
}

/* Cuts all control connections, as a broken network would. */
static void connections_cut(struct world *world)
{
	uint32_t i;

	pthread_mutex_lock(&world->server->lock);
	for (i = 0; i < world->server->connections_used; i++)
		if (world->server->connections[i].qp)
			world->choice.ops->disconnect(
				world->server->connections[i].qp);
	pthread_mutex_unlock(&world->server->lock);
}

static void resume_keeps_slabs_and_ends_old_queue_pairs(void **state)
{
	struct rbx_session *session;
	struct rbx_loan loan;
	struct rbx_qp *qp;
	struct world world;

	(void)state;
	world_options(&world);
	strcpy(world.options.secret_file,
	       world_secret_file("correct horse battery staple\n", 0600));
	world_start(&world);
	session = world_session(&world);
	assert_int_equal(rbx_session_map(session, &loan), 0);
	qp = world_qp(&world, session);
	memset(world.memory, 0x77, WORLD_SLAB_BYTES);
	assert_int_equal(world_transfer(&world, qp, RBX_OP_WRITE, &loan), 0);
	connections_cut(&world);
	world_wait(&world, is_lost);
	assert_int_equal(rbx_session_map(session, &loan), -ENOTCONN);

	assert_int_equal(rbx_session_resume(session, rbx_after_ms(RESUME_MS)), 0);
	/* The old queue pair was ended before the answer. (With memory that
	 * is mapped it is the client that must not use it.) */
	if (!qp->mapped)
		assert_int_not_equal(world_transfer(&world, qp, RBX_OP_WRITE,
						    &loan),
				     0);
	world.choice.ops->destroy_qp(qp);
	assert_int_equal(rbx_session_check(session, &loan), 0);
	qp = world_qp(&world, session);
	memset(world.memory, 0, WORLD_SLAB_BYTES);
	assert_int_equal(world_transfer(&world, qp, RBX_OP_READ, &loan), 0);
	assert_int_equal(world.memory[1000], 0x77);
	assert_int_equal(world_stats(&world).sessions, 1);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(session);
	world_stop(&world);
}

static void resume_of_what_still_stands_ends_old_queue_pairs(void **state)
{
	struct rbx_session *session;
	struct rbx_loan loan;
	struct rbx_qp *qp;
	struct world world;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	assert_int_equal(rbx_session_map(session, &loan), 0);
	qp = world_qp(&world, session);
	assert_int_equal(rbx_session_resume(session, rbx_after_ms(RESUME_MS)), 0);
	if (!qp->mapped)
		assert_int_not_equal(world_transfer(&world, qp, RBX_OP_WRITE,
						    &loan),
				     0);
	world.choice.ops->destroy_qp(qp);
	qp = world_qp(&world, session);
	assert_int_equal(world_transfer(&world, qp, RBX_OP_WRITE, &loan), 0);
	assert_int_equal(world.witness.lost_count, 0);
	assert_int_equal(world_stats(&world).sessions, 1);
	assert_int_equal(world_stats(&world).clients, 1);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(session);
	world_stop(&world);
}

/* Lends its client a slab of which it never hears. */
static void lend_in_vain(struct world *world)
{
	struct rbx_server *server = world->server;
	struct rbx_client *client = &server->clients[0];
	struct rbx_slab_memory *memory;
	struct rbx_lender_loan loan;

	pthread_mutex_lock(&server->lock);
	assert_int_equal(
		rbx_lender_lend(server->lender, client->session_id, &loan), 0);
	server->slabs[loan.slab_id - 1].holder = &client->own;
	client->own.slabs_held++;
	memory = &server->workers.slabs[loan.slab_id - 1];
	memory->domain = client->own.domain;
	memory->lent_bytes = server->options.slab_bytes;
	memory->work = RBX_SLAB_PREPARE;
	while (rbx_slab_prepare_step(server, memory) > 0)
		;
	assert_non_null(memory->mr);
	assert_true(rbx_lender_prepared(server->lender, &loan));
	pthread_mutex_unlock(&server->lock);
}

static bool one_slab_is_lent(struct world *world)
{
	return world_stats(world).slabs_lent == 1;
}

static void slab_whose_loan_was_not_heard_goes_back_at_the_resume(void **state)
{
	struct rbx_loan loan, later;
	struct rbx_session *session;
	struct world world;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	assert_int_equal(rbx_session_map(session, &loan), 0);
	lend_in_vain(&world);
	assert_int_equal(world_stats(&world).slabs_lent, 2);
	assert_int_equal(rbx_session_resume(session, rbx_after_ms(RESUME_MS)), 0);
	world_wait(&world, one_slab_is_lent);
	assert_int_equal(rbx_session_check(session, &loan), 0);
	/* What it is lent after that is its own as ever. */
	assert_int_equal(rbx_session_map(session, &later), 0);
	assert_int_equal(rbx_session_resume(session, rbx_after_ms(RESUME_MS)), 0);
	assert_int_equal(rbx_session_check(session, &loan), 0);
	assert_int_equal(rbx_session_check(session, &later), 0);
	rbx_session_close(session);
	world_stop(&world);
}

static void resume_at_a_restarted_server_is_stale(void **state)
{
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	assert_int_equal(rbx_session_map(session, &loan), 0);
	strcpy(world.options.listen, rbx_server_address(world.server));
	rbx_server_stop(world.server);
	world_wait(&world, is_lost);
	assert_int_equal(rbx_session_resume(session, rbx_after_ms(RESUME_MS)), -ECONNREFUSED);
	if (rbx_server_start(&world.server, &world.options))
		fail_msg("%s", rbx_last_error());
	assert_int_equal(rbx_session_resume(session, rbx_after_ms(RESUME_MS)), -ESTALE);
	print_message("resume: %s\n", rbx_last_error());
	rbx_session_close(session);
	world_stop(&world);
}

static void lease_that_ran_out_takes_the_slabs(void **state)
{
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;

	(void)state;
	world_options(&world);
	world.options.lease_ms = 500;
	world_start(&world);
	session = world_session(&world);
	assert_int_equal(rbx_session_map(session, &loan), 0);
	connections_cut(&world);
	world_wait(&world, is_lost);
	world_wait(&world, nothing_is_lent);
	assert_int_equal(world_stats(&world).leases_expired, 1);
	assert_int_equal(world_stats(&world).slabs_revoked, 1);
	assert_int_equal(rbx_session_resume(session, rbx_after_ms(RESUME_MS)), -ESTALE);
	rbx_session_close(session);
	world_stop(&world);
}

static bool heard_for_a_term(struct world *world)
{
	return world_stats(world).heartbeats >= 7; /* 1.25 s apart */
}

static void heartbeats_keep_an_idle_client(void **state)
{
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;

	(void)state;
	world_options(&world);
	/* Half of it, less a heartbeat's time, is what a busy machine may take
	 * to run the two threads: of 4 s that was not always enough. */
	world.options.lease_ms = 8000;
	world_start(&world);
	session = world_session(&world);
	assert_int_equal(rbx_session_map(session, &loan), 0);
	world_wait(&world, heard_for_a_term);
	assert_int_equal(rbx_session_check(session, &loan), 0);
	assert_int_equal(world.witness.lost_count, 0);
	rbx_session_close(session);
	world_stop(&world);
}

/* The child borrows a slab, says so, and never returns. */
static void child_borrows(int address_fd, int done_fd)
{
	const struct rbx_session_events events = { 0 };
	struct rbx_sessions_options options = {
		.insecure = true,
		.silence_ms = 5000,
	};
	struct rbx_fabric_choice choice;
	struct rbx_sessions *set;
	struct rbx_session *session;
	char address[RBX_NAME_MAX];
	struct rbx_loan loan;
	struct world world;

	world_options(&world); /* for the name of the fabric */
	if (read(address_fd, address, sizeof(address)) != sizeof(address) ||
	    rbx_fabric_choose(world.options.fabric, "", -1, NULL, &choice) ||
	    choice.ops->open(&choice.options, &options.device, NULL) ||
	    rbx_sessions_open(&set, &options) ||
	    rbx_session_open_name(set, address, &events, &session) ||
	    rbx_session_map(session, &loan) || write(done_fd, "", 1) != 1)
		_exit(1);
	pause();
	_exit(2);
}

static void session_given_up_loses_its_slabs_with_its_lease(void **state)
{
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;

	(void)state;
	world_options(&world);
	world.options.lease_ms = 400;
	world_start(&world);
	session = world_session(&world);
	assert_int_equal(rbx_session_map(session, &loan), 0);
	/* It is connected, and heartbeats would go on for ever. */
	rbx_session_give_up(session);
	world_wait(&world, nothing_is_lent);
	assert_int_equal(rbx_session_map(session, &loan), -ENOTCONN);
	rbx_session_close(session);
	world_stop(&world);
}

static void killed_client_gives_its_slabs_back(void **state)
{
	int address_pipe[2], done_pipe[2], status;
	struct world world;
	char byte = 0;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(address_pipe), 0);
	assert_int_equal(pipe(done_pipe), 0);
	child = fork(); /* before there is any thread */
	assert_true(child >= 0);
	if (!child)
		child_borrows(address_pipe[0], done_pipe[1]);
	close(done_pipe[1]);
	world_options(&world);
	world.options.lease_ms = 500;
	world_start(&world);
	assert_true(write(address_pipe[1], rbx_server_address(world.server),
			  RBX_NAME_MAX) == RBX_NAME_MAX);
	assert_int_equal(read(done_pipe[0], &byte, 1), 1);
	assert_int_equal(world_stats(&world).slabs_lent, 1);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	world_wait(&world, nobody_is_connected);
	world_wait(&world, nothing_is_lent);
	assert_int_equal(world_stats(&world).slabs_revoked, 1);
	close(done_pipe[0]);
	close(address_pipe[0]);
	close(address_pipe[1]);
	world_stop(&world);
}

/* ---- Getting memory back ---------------------------------------------------*/

struct drainer {
	struct world *world;
	int result;
};

static void *drain(void *argument)
{
	struct drainer *drainer = argument;

	drainer->result = rbx_server_drain(drainer->world->server,
					   WORLD_WAIT_MS);
	return NULL;
}

static bool was_asked(struct world *world)
{
	return RBX_LOAD_ACQUIRE(&world->witness.evict_count) > 0;
}

static void drain_asks_refuses_and_waits(void **state)
{
	struct rbx_session *session;
	struct drainer drainer;
	struct rbx_loan loan, more;
	struct world world;
	pthread_t thread;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	assert_int_equal(rbx_session_map(session, &loan), 0);
	assert_int_equal(rbx_server_drain(world.server, 1), -ETIMEDOUT);
	drainer = (struct drainer){ .world = &world, .result = 1 };
	assert_int_equal(pthread_create(&thread, NULL, drain, &drainer), 0);
	world_wait(&world, was_asked);
	assert_int_equal(world.witness.evicted_slab_id, loan.slab_id);
	assert_int_equal(world.witness.evicted_epoch, loan.epoch);
	assert_int_equal(rbx_session_map(session, &more), -ENOSPC);
	assert_int_equal(rbx_session_check(session, &loan), 0);
	assert_int_equal(rbx_session_unmap(session, &loan), 0);
	pthread_join(thread, NULL);
	assert_int_equal(drainer.result, 0);
	rbx_session_close(session);
	world_stop(&world);
}

static void slab_not_given_back_in_time_is_revoked(void **state)
{
	struct rbx_loan loan, kept;
	struct rbx_session *session;
	struct rbx_qp *qp;
	struct world world;
	uint64_t one_ms_ns = 1000000;
	int status;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	assert_int_equal(rbx_session_map(session, &loan), 0);
	assert_int_equal(rbx_session_map(session, &kept), 0);
	qp = world_qp(&world, session);
	pthread_mutex_lock(&world.server->lock);
	assert_int_equal(rbx_lender_shrink(world.server->lender, 1,
					   rbx_now_ns(), one_ms_ns),
			 1);
	pthread_mutex_unlock(&world.server->lock);
	for (;;) { /* until the control thread has looked */
		int err = rbx_session_check(session, &loan);

		if (err == -EPERM)
			break;
		assert_int_equal(err, 0);
	}
	assert_int_equal(rbx_session_check(session, &kept), 0);
	assert_int_equal(world_transfer(&world, qp, RBX_OP_READ, &kept), 0);
	do /* until a worker has ended its key */
		status = world_transfer(&world, qp, RBX_OP_READ, &loan);
	while (!status);
	assert_int_equal(status, -EACCES);
	assert_int_equal(world_stats(&world).slabs_revoked, 1);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(session);
	world_stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* The first: it forks, which wants a process without threads. */
		cmocka_unit_test(
			session_given_up_loses_its_slabs_with_its_lease),
		cmocka_unit_test(killed_client_gives_its_slabs_back),
		cmocka_unit_test(resume_keeps_slabs_and_ends_old_queue_pairs),
		cmocka_unit_test(
			resume_of_what_still_stands_ends_old_queue_pairs),
		cmocka_unit_test(
			slab_whose_loan_was_not_heard_goes_back_at_the_resume),
		cmocka_unit_test(resume_at_a_restarted_server_is_stale),
		cmocka_unit_test(lease_that_ran_out_takes_the_slabs),
		cmocka_unit_test(heartbeats_keep_an_idle_client),
		cmocka_unit_test(drain_asks_refuses_and_waits),
		cmocka_unit_test(slab_not_given_back_in_time_is_revoked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
