/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slow_memory_test.c - what a server does while memory takes its time.
 *
 * A gate stands in the way of whoever populates memory, and another one in the way
 * of whoever empties it. While a gate is closed nothing comes of a slab, however
 * long that takes; so each test sees what goes on beside it, without a clock.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/clock.h"
#include "server/state.h"
#include "tests/server/raw_client.h"

#define RESUME_MS 3000

/* ---- The gates. --------------------------------------------------------------*/

static struct gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_closed;
	int waiting_count;
} making = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0 },
  emptying = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0 };

static void gate_pass(struct gate *gate)
{
	pthread_mutex_lock(&gate->lock);
	gate->waiting_count++;
	pthread_cond_broadcast(&gate->changed);
	while (gate->is_closed)
		pthread_cond_wait(&gate->changed, &gate->lock);
	gate->waiting_count--;
	pthread_mutex_unlock(&gate->lock);
}

static void gate_set(struct gate *gate, bool is_closed)
{
	pthread_mutex_lock(&gate->lock);
	gate->is_closed = is_closed;
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->lock);
}

/* Until somebody stands before it. */
static void gate_wait(struct gate *gate)
{
	pthread_mutex_lock(&gate->lock);
	while (!gate->waiting_count)
		pthread_cond_wait(&gate->changed, &gate->lock);
	pthread_mutex_unlock(&gate->lock);
}

/* These two stand in for the C library's. */
int madvise(void *addr, size_t length, int advice)
{
	if (advice == MADV_POPULATE_WRITE)
		gate_pass(&making);
	return (int)syscall(SYS_madvise, addr, length, advice);
}

int fallocate(int fd, int mode, off_t offset, off_t length)
{
	if (mode & FALLOC_FL_PUNCH_HOLE)
		gate_pass(&emptying);
	return (int)syscall(SYS_fallocate, fd, mode, offset, length);
}

/* ---- A client that waits for a slab. -----------------------------------------*/

struct borrower {
	pthread_t thread;
	struct rbx_session *session;
	struct rbx_loan loan;
	int status;
};

static void *borrow(void *argument)
{
	struct borrower *borrower = argument;

	borrower->status = rbx_session_map(borrower->session, &borrower->loan);
	return NULL;
}

static void borrow_begin(struct borrower *borrower, struct world *world)
{
	borrower->session = world_session(world);
	pthread_create(&borrower->thread, NULL, borrow, borrower);
}

static int borrow_end(struct borrower *borrower)
{
	pthread_join(borrower->thread, NULL);
	return borrower->status;
}

static void start(struct world *world, uint32_t slabs_count)
{
	world_options(world);
	world->options.memory_bytes = slabs_count * WORLD_SLAB_BYTES;
	world_start(world);
}

static bool all_is_free(struct world *world)
{
	struct rbx_lender_counts counts;

	pthread_mutex_lock(&world->server->lock);
	rbx_lender_counts(world->server->lender, &counts);
	pthread_mutex_unlock(&world->server->lock);
	return !counts.slabs_lent && !counts.slabs_preparing && !counts.slabs_ending;
}

/* It can be asked, resumed, and opened anew. */
static void others_are_served(struct world *world, struct rbx_session *session)
{
	struct rbx_server_stats stats;

	assert_int_equal(rbx_session_stats(session, &stats), 0);
	assert_int_equal(rbx_session_resume(session, rbx_after_ms(RESUME_MS)), 0);
	rbx_session_close(world_session(world));
}

/* ---- While slabs of an owner end. --------------------------------------------*/

#define SECRET "correct horse battery staple"

static void borrow_begin_as(struct borrower *borrower, struct world *world, const char *name)
{
	borrower->session = world_session_as(world, name, SECRET);
	assert_non_null(borrower->session);
	pthread_create(&borrower->thread, NULL, borrow, borrower);
}

static bool one_waits(struct world *world);

/* One owner has its quota with a slab that is being emptied: it waits for that, and lets
 * another owner, who came later, pass. Returns whether it got its slab then: it may have
 * waited for too long. */
static bool other_owner_passes(struct world *world)
{
	struct borrower first, other;
	struct rbx_session *left = world_session_as(world, "one", SECRET);
	struct rbx_loan loan;
	int err;

	assert_int_equal(rbx_session_map(left, &loan), 0);
	gate_set(&emptying, true);
	rbx_session_close(left);
	gate_wait(&emptying);
	borrow_begin_as(&first, world, "one");
	world_wait(world, one_waits);
	borrow_begin_as(&other, world, "other");
	assert_int_equal(borrow_end(&other), 0);
	gate_set(&emptying, false);
	err = borrow_end(&first);
	rbx_session_close(first.session);
	rbx_session_close(other.session);
	world_wait(world, all_is_free);
	return !err;
}

/* A busy machine may be late, but not each time. */
static void owner_waits_for_its_own_slabs_alone(void **state)
{
	bool has_passed = false;
	struct world world;

	(void)state;
	world_options(&world);
	world.options.quota_bytes = WORLD_SLAB_BYTES;
	strcpy(world.options.secrets_file,
	       world_secrets_file("one:" SECRET "\nother:" SECRET "\n"));
	world_start(&world);
	for (int i = 0; i < 10 && !has_passed; i++)
		has_passed = other_owner_passes(&world);
	assert_true(has_passed);
	world_stop(&world);
}

/* ---- While a slab is waited for. ---------------------------------------------*/

/* The only slab is being emptied. A client asks for it for itself, and opens a volume before it
 * gets it. Returns the reason why it gets none. */
static uint32_t volume_opened_while_waiting(struct world *world)
{
	struct rbx_wire_message map = { .type = RBX_WIRE_SLAB_MAP }, answer;
	struct rbx_wire_message open = {
		.type = RBX_WIRE_VOLUME_OPEN,
		.volume_open = { .name = "db", .holder = "a test", .writer_epoch = 1,
				 .volume_id = 7, .mode = RBX_WIRE_OPEN_CREATE },
	};
	struct rbx_session *left = world_session(world);
	struct raw_client raw;
	struct rbx_loan loan;

	assert_int_equal(rbx_session_map(left, &loan), 0);
	raw_client_arrive(&raw, world);
	raw_client_enter(&raw);
	gate_set(&emptying, true);
	rbx_session_close(left);
	gate_wait(&emptying);
	raw_client_send(&raw, &map);
	raw_client_send(&raw, &open);
	assert_true(raw_client_hear(&raw, &answer));
	assert_int_equal(answer.type, RBX_WIRE_VOLUME);
	gate_set(&emptying, false);
	assert_true(raw_client_hear(&raw, &answer));
	assert_int_equal(answer.type, RBX_WIRE_ERROR);
	raw_client_leave(&raw);
	world_wait(world, all_is_free);
	return answer.status;
}

static void slab_is_for_who_asked_for_it(void **state)
{
	uint32_t reason = RBX_REASON_LATER;
	struct world world;

	(void)state;
	start(&world, 1);
	/* A busy machine may be late, but not each time. */
	for (int i = 0; i < 10 && reason == RBX_REASON_LATER; i++)
		reason = volume_opened_while_waiting(&world);
	assert_int_equal(reason, RBX_REASON_OUT_OF_TURN);
	world_stop(&world);
}

/* ---- While a slab is made. ---------------------------------------------------*/

static void others_are_served_while_a_slab_is_made(void **state)
{
	struct borrower borrower;
	struct rbx_session *other;
	struct world world;

	(void)state;
	start(&world, 4);
	other = world_session(&world);
	gate_set(&making, true);
	borrow_begin(&borrower, &world);
	gate_wait(&making);
	others_are_served(&world, other);
	assert_int_equal(world_stats(&world).slabs_mapped, 0);
	gate_set(&making, false);
	assert_int_equal(borrow_end(&borrower), 0);
	assert_int_equal(rbx_session_check(borrower.session, &borrower.loan),
			 0);
	rbx_session_close(borrower.session);
	rbx_session_close(other);
	world_stop(&world);
}

/* Ends the control connection of a client, as a broken network would. */
static void connection_cut(struct world *world, uint32_t client)
{
	struct rbx_server *server = world->server;

	pthread_mutex_lock(&server->lock);
	world->choice.ops->disconnect(server->clients[client].connection->qp);
	pthread_mutex_unlock(&server->lock);
}

static void slab_of_who_is_gone_meanwhile_is_not_lent(void **state)
{
	struct borrower borrower;
	struct rbx_loan loan;
	struct world world;

	(void)state;
	start(&world, 1);
	gate_set(&making, true);
	borrow_begin(&borrower, &world);
	gate_wait(&making);
	connection_cut(&world, 0);
	assert_int_equal(borrow_end(&borrower), -ENOTCONN);
	assert_int_equal(rbx_session_resume(borrower.session, rbx_after_ms(RESUME_MS)), 0);
	gate_set(&making, false);
	world_wait(&world, all_is_free);
	assert_int_equal(world_stats(&world).slabs_mapped, 0);
	assert_int_equal(rbx_session_map(borrower.session, &loan), 0);
	rbx_session_close(borrower.session);
	world_stop(&world);
}

/* The same, and the client comes never again. */
static void client_that_leaves_meanwhile_leaves_nothing(void **state)
{
	struct borrower borrower;
	struct rbx_session *next;
	struct rbx_loan loan;
	struct world world;

	(void)state;
	start(&world, 1);
	gate_set(&making, true);
	borrow_begin(&borrower, &world);
	gate_wait(&making);
	connection_cut(&world, 0);
	assert_int_equal(borrow_end(&borrower), -ENOTCONN);
	assert_int_equal(rbx_session_resume(borrower.session, rbx_after_ms(RESUME_MS)), 0);
	rbx_session_close(borrower.session);
	next = world_session(&world);
	gate_set(&making, false);
	assert_int_equal(rbx_session_map(next, &loan), 0);
	rbx_session_close(next);
	world_stop(&world);
}

static void drain_refuses_who_waits_for_a_slab(void **state)
{
	struct borrower borrower;
	struct world world;

	(void)state;
	start(&world, 4);
	gate_set(&making, true);
	borrow_begin(&borrower, &world);
	gate_wait(&making);
	assert_int_equal(rbx_server_drain(world.server, 0), -ETIMEDOUT);
	assert_int_not_equal(borrow_end(&borrower), 0);
	gate_set(&making, false);
	assert_int_equal(rbx_server_drain(world.server, WORLD_WAIT_MS), 0);
	assert_int_equal(world_stats(&world).slabs_mapped, 0);
	rbx_session_close(borrower.session);
	world_stop(&world);
}

static void *stop(void *server)
{
	rbx_server_stop(server);
	return NULL;
}

static void server_stops_when_its_workers_are_through(void **state)
{
	struct borrower borrower;
	struct world world;
	pthread_t stopper;

	(void)state;
	start(&world, 4);
	gate_set(&making, true);
	borrow_begin(&borrower, &world);
	gate_wait(&making);
	pthread_create(&stopper, NULL, stop, world.server);
	gate_set(&making, false);
	pthread_join(stopper, NULL);
	(void)borrow_end(&borrower); /* it may have been in time */
	rbx_session_close(borrower.session);
	if (rbx_server_start(&world.server, &world.options))
		fail_msg("%s", rbx_last_error());
	world_stop(&world);
}

/* ---- While a slab is emptied. ------------------------------------------------*/

static void others_are_served_while_a_slab_is_emptied(void **state)
{
	struct rbx_session *leaver, *other;
	struct rbx_loan loan;
	struct world world;

	(void)state;
	start(&world, 4);
	leaver = world_session(&world);
	other = world_session(&world);
	assert_int_equal(rbx_session_map(leaver, &loan), 0);
	gate_set(&emptying, true);
	rbx_session_close(leaver);
	gate_wait(&emptying);
	others_are_served(&world, other);
	assert_int_equal(rbx_session_map(other, &loan), 0);
	/* What is still ending can be had, who waits for it. */
	assert_int_equal(rbx_session_free_bytes(other), 3 * WORLD_SLAB_BYTES);
	assert_false(all_is_free(&world));
	gate_set(&emptying, false);
	rbx_session_close(other);
	world_wait(&world, all_is_free);
	world_stop(&world);
}

static void who_finds_all_slabs_ending_waits_for_one(void **state)
{
	struct rbx_session *leaver, *other;
	struct borrower borrower;
	struct rbx_loan loan;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	start(&world, 1);
	leaver = world_session(&world);
	assert_int_equal(rbx_session_map(leaver, &loan), 0);
	qp = world_qp(&world, leaver);
	memset(world.memory, 0x5a, WORLD_SLAB_BYTES);
	assert_int_equal(world_transfer(&world, qp, RBX_OP_WRITE, &loan), 0);
	world.choice.ops->destroy_qp(qp);
	gate_set(&emptying, true);
	rbx_session_close(leaver);
	gate_wait(&emptying);
	borrow_begin(&borrower, &world);
	other = world_session(&world);
	others_are_served(&world, other);
	rbx_session_close(other);
	gate_set(&emptying, false);
	assert_int_equal(borrow_end(&borrower), 0);
	qp = world_qp(&world, borrower.session);
	assert_int_equal(world_transfer(&world, qp, RBX_OP_READ,
					&borrower.loan),
			 0);
	assert_int_equal(world.memory[WORLD_SLAB_BYTES / 2], 0);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(borrower.session);
	world_stop(&world);
}

/* Nothing comes of it for as long as the gate is closed; it is told so, before it takes
 * the server for dead, and its session is what it was. */
static void who_waits_too_long_is_told_to_come_later(void **state)
{
	struct rbx_server_stats stats;
	struct rbx_session *leaver;
	struct borrower borrower;
	struct rbx_loan loan;
	struct world world;

	(void)state;
	start(&world, 1);
	leaver = world_session(&world);
	assert_int_equal(rbx_session_map(leaver, &loan), 0);
	gate_set(&emptying, true);
	rbx_session_close(leaver);
	gate_wait(&emptying);
	borrow_begin(&borrower, &world);
	assert_int_equal(borrow_end(&borrower), -ETIMEDOUT);
	assert_int_equal(rbx_session_stats(borrower.session, &stats), 0);
	gate_set(&emptying, false);
	world_wait(&world, all_is_free);
	assert_int_equal(rbx_session_map(borrower.session, &loan), 0);
	rbx_session_close(borrower.session);
	world_stop(&world);
}

/* So many wait for a slab. */
static bool wait_for_slabs(struct world *world, uint32_t wanted_count)
{
	const struct rbx_late_answer *late;
	uint32_t count = 0;

	pthread_mutex_lock(&world->server->lock);
	for (late = world->server->waiting_first; late; late = late->next)
		count++;
	pthread_mutex_unlock(&world->server->lock);
	return count == wanted_count;
}

static bool one_waits(struct world *world)
{
	return wait_for_slabs(world, 1);
}

static bool two_wait(struct world *world)
{
	return wait_for_slabs(world, 2);
}

static void who_comes_after_one_that_waits_no_more_waits_in_line(void **state)
{
	struct borrower borrowers[3];
	struct rbx_session *leaver;
	struct rbx_loan loan;
	struct world world;
	uint32_t i;

	(void)state;
	start(&world, 2);
	leaver = world_session(&world);
	for (i = 0; i < 3; i++)
		borrowers[i].session = world_session(&world);
	for (i = 0; i < 2; i++)
		assert_int_equal(rbx_session_map(leaver, &loan), 0);
	gate_set(&emptying, true);
	rbx_session_close(leaver);
	gate_wait(&emptying);
	pthread_create(&borrowers[0].thread, NULL, borrow, &borrowers[0]);
	world_wait(&world, one_waits);
	pthread_create(&borrowers[1].thread, NULL, borrow, &borrowers[1]);
	world_wait(&world, two_wait);
	/* The leaver was the first, and the others came in turn. */
	connection_cut(&world, 2);
	assert_int_equal(borrow_end(&borrowers[1]), -ENOTCONN);
	world_wait(&world, one_waits);
	pthread_create(&borrowers[2].thread, NULL, borrow, &borrowers[2]);
	world_wait(&world, two_wait);
	gate_set(&emptying, false);
	assert_int_equal(borrow_end(&borrowers[0]), 0);
	assert_int_equal(borrow_end(&borrowers[2]), 0);
	for (i = 0; i < 3; i++)
		rbx_session_close(borrowers[i].session);
	world_stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owner_waits_for_its_own_slabs_alone),
		cmocka_unit_test(slab_is_for_who_asked_for_it),
		cmocka_unit_test(others_are_served_while_a_slab_is_made),
		cmocka_unit_test(slab_of_who_is_gone_meanwhile_is_not_lent),
		cmocka_unit_test(client_that_leaves_meanwhile_leaves_nothing),
		cmocka_unit_test(drain_refuses_who_waits_for_a_slab),
		cmocka_unit_test(server_stops_when_its_workers_are_through),
		cmocka_unit_test(others_are_served_while_a_slab_is_emptied),
		cmocka_unit_test(who_finds_all_slabs_ending_waits_for_one),
		cmocka_unit_test(who_waits_too_long_is_told_to_come_later),
		cmocka_unit_test(
			who_comes_after_one_that_waits_no_more_waits_in_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
