/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_stall_test.c - messages that wait for a receive on the soft device: one that does
 * not come fails them, and what this side or the network has not done yet does not.
 */
#include "fabric/soft/deadlines.h"
#include "tests/fabric/moved.h"
#include "tests/fabric/shared_peer.h"

/* As if the thread of the device had looked last so long ago. */
static void time_pass(struct rbx_qp *qp, uint32_t ms)
{
	soft_qp_check_deadlines(soft_qp_of(qp), soft_now_ns(), ms * 1000000ull);
}

static void ticks_pass(struct rbx_qp *qp, uint32_t ms)
{
	for (; ms; ms -= SOFT_TICK_MS)
		time_pass(qp, SOFT_TICK_MS);
}

static int bare_connect(struct world *world, bool served, struct rbx_qp **qp)
{
	return peer_connect(world, 8, false, served, qp);
}

static void stall_close(struct world *world, int fd, struct rbx_qp *qp)
{
	close(fd);
	world->pair.ops->destroy_qp(qp);
	world_close(world);
}

/* What waits fails, after as long as it should. */
static void expect_no_receive(struct world *world, struct rbx_qp *qp)
{
	ticks_pass(qp, SOFT_RECEIVER_WAIT_MS + SOFT_TICK_MS);
	assert_int_equal(state_of(qp), SOFT_QP_ERROR);
	assert_int_equal(test_wait(&world->pair, world->pair.server_cq).status,
			 -ENOBUFS);
}

/* The program polls later than a message waits. */
static void credit_that_was_not_read_fails_no_message(void **state)
{
	uint8_t bytes[SOFT_FRAME_BYTES];
	struct soft_frame frame;
	struct world world;
	struct rbx_qp *qp;
	int fd;

	(void)state;
	world_open(&world);
	fd = bare_connect(&world, false, &qp);
	message_post(&world, qp, 0);
	give(fd, 1);
	assert_true(is_readable(soft_qp_of(qp)->fd, 30000));
	ticks_pass(qp, 2 * SOFT_RECEIVER_WAIT_MS);
	assert_int_equal(state_of(qp), SOFT_QP_CONNECTED);
	test_nothing(&world.pair, world.pair.server_cq);
	assert_int_equal(recv(fd, bytes, sizeof(bytes), MSG_WAITALL), sizeof(bytes));
	assert_null(soft_frame_decode(bytes, &frame));
	assert_int_equal(frame.opcode, SOFT_SEND);
	stall_close(&world, fd, qp);
}

/* As the thread of the device sees it when the process has been stopped. */
static void time_without_a_look_fails_no_message(void **state)
{
	struct world world;
	struct rbx_qp *qp;
	int fd;

	(void)state;
	world_open(&world);
	fd = bare_connect(&world, true, &qp);
	message_post(&world, qp, 0);
	time_pass(qp, SOFT_TICK_MS);
	time_pass(qp, 10 * SOFT_RECEIVER_WAIT_MS);
	assert_int_equal(state_of(qp), SOFT_QP_CONNECTED);
	expect_no_receive(&world, qp);
	stall_close(&world, fd, qp);
}

static bool output_is_blocked(struct rbx_qp *base)
{
	struct soft_qp *qp = soft_qp_of(base);
	bool blocked;

	soft_qp_lock(qp);
	blocked = qp->output_blocked;
	soft_qp_unlock(qp);
	return blocked;
}

/* It has not come to the peer yet, but all that stands before it has gone out. */
static void message_behind_a_long_write_has_its_time(void **state)
{
	static uint8_t bytes[1 << 20];
	uint32_t come_bytes = 0;
	struct world world;
	struct rbx_qp *qp;
	int fd;

	(void)state;
	world_open(&world);
	fd = bare_connect(&world, true, &qp);
	message_post(&world, qp, TARGET_BYTES);
	assert_true(output_is_blocked(qp));
	ticks_pass(qp, 2 * SOFT_RECEIVER_WAIT_MS);
	assert_int_equal(state_of(qp), SOFT_QP_CONNECTED);
	while (come_bytes < SOFT_FRAME_BYTES + TARGET_BYTES)
		come_bytes += (uint32_t)recv(fd, bytes, sizeof(bytes), 0);
	while (output_is_blocked(qp))
		usleep(1000);
	ticks_pass(qp, SOFT_RECEIVER_WAIT_MS / 2);
	assert_int_equal(state_of(qp), SOFT_QP_CONNECTED);
	ticks_pass(qp, SOFT_RECEIVER_WAIT_MS);
	assert_int_equal(state_of(qp), SOFT_QP_ERROR);
	stall_close(&world, fd, qp);
}

/* So much of what the peer sends has come. */
static void payload_come(int fd, struct rbx_qp *qp, uint32_t length_bytes)
{
	static const uint8_t bytes[TARGET_BYTES];
	const uint64_t moved = moved_bytes_of(qp);

	assert_int_equal(send(fd, bytes, length_bytes, 0), length_bytes);
	while (moved_bytes_of(qp) - moved < length_bytes &&
	       state_of(qp) == SOFT_QP_CONNECTED)
		usleep(100);
}

/* A part of the answer to the READ has come. */
static void answer_some(int fd, struct rbx_qp *qp)
{
	payload_come(fd, qp, 1024);
}

static int slow_answer_open(struct world *world, bool shares_receives,
			    struct rbx_qp **qp)
{
	int fd;

	world_open(world);
	fd = peer_connect(world, 8, shares_receives, true, qp);
	read_and_message_post(world, *qp);
	frame_send(fd, (struct soft_frame){ .opcode = SOFT_RESPONSE,
					    .sequence = SOFT_FIRST_SEQUENCE,
					    .length_bytes = TARGET_BYTES }, 0);
	return fd;
}

/* The peer can tell of a receive behind its answer only, which comes slowly. */
static void message_behind_a_read_has_its_time(void **state)
{
	struct world world;
	struct rbx_qp *qp;
	uint32_t ms;
	int fd;

	(void)state;
	fd = slow_answer_open(&world, false, &qp);
	for (ms = 0; ms < 2 * SOFT_RECEIVER_WAIT_MS; ms += SOFT_TICK_MS) {
		assert_int_equal(state_of(qp), SOFT_QP_CONNECTED);
		answer_some(fd, qp);
		time_pass(qp, SOFT_TICK_MS);
	}
	assert_int_equal(state_of(qp), SOFT_QP_CONNECTED);
	ticks_pass(qp, SOFT_RECEIVER_WAIT_MS + SOFT_TICK_MS);
	assert_int_equal(state_of(qp), SOFT_QP_ERROR);
	stall_close(&world, fd, qp);
}

/* The network that carries the answer rests again and again, but never for as long as a
 * message waits. */
static void expect_time_with_rests(bool shares_receives)
{
	struct world world;
	struct rbx_qp *qp;
	int fd, i;

	fd = slow_answer_open(&world, shares_receives, &qp);
	for (i = 0; i < 4; i++) {
		answer_some(fd, qp);
		time_pass(qp, SOFT_TICK_MS);
		ticks_pass(qp, SOFT_RECEIVER_WAIT_MS / 2);
		assert_int_equal(state_of(qp), SOFT_QP_CONNECTED);
	}
	stall_close(&world, fd, qp);
}

static void message_behind_a_read_that_rests_has_its_time(void **state)
{
	(void)state;
	expect_time_with_rests(false);
	expect_time_with_rests(true); /* it is too early to ask for a receive */
}

/* The network rests for most of what a message waits, then brings all at once. */
static void message_behind_a_read_that_comes_late_has_its_time(void **state)
{
	struct world world;
	struct rbx_qp *qp;
	int fd;

	(void)state;
	fd = slow_answer_open(&world, true, &qp);
	ticks_pass(qp, SOFT_RECEIVER_WAIT_MS * 3 / 4);
	payload_come(fd, qp, TARGET_BYTES);
	ticks_pass(qp, SOFT_RECEIVER_WAIT_MS * 3 / 4);
	assert_int_equal(state_of(qp), SOFT_QP_CONNECTED);
	ticks_pass(qp, SOFT_RECEIVER_WAIT_MS / 2);
	assert_int_equal(state_of(qp), SOFT_QP_ERROR);
	stall_close(&world, fd, qp);
}

/* What the peer asks for itself does not stand before the message. */
static void message_to_a_peer_that_only_writes_fails(void **state)
{
	struct world world;
	struct rbx_qp *qp;
	uint32_t ms;
	int fd;

	(void)state;
	world_open(&world);
	fd = peer_connect(&world, 8, false, true, &qp);
	read_and_message_post(&world, qp);
	frame_send(fd, (struct soft_frame){
			   .opcode = SOFT_WRITE, .sequence = SOFT_FIRST_SEQUENCE,
			   .rkey = world.pair.target_mr->rkey,
			   .remote_addr = (uintptr_t)world.pair.target_memory,
			   .length_bytes = TARGET_BYTES }, 0);
	for (ms = 0; ms < 2 * SOFT_RECEIVER_WAIT_MS &&
		     state_of(qp) == SOFT_QP_CONNECTED; ms += SOFT_TICK_MS) {
		payload_come(fd, qp, 1024);
		time_pass(qp, SOFT_TICK_MS);
	}
	assert_int_equal(state_of(qp), SOFT_QP_ERROR);
	stall_close(&world, fd, qp);
}

/* Too long to ask for a receive before it is answered: the message waits all the same. */
static void message_behind_a_read_that_nobody_answers_fails(void **state)
{
	struct world world;
	struct rbx_qp *qp;
	int fd;

	(void)state;
	world_open(&world);
	fd = peer_connect(&world, 8, true, false, &qp);
	read_and_message_post(&world, qp);
	ticks_pass(qp, SOFT_RECEIVER_WAIT_MS - 2 * SOFT_TICK_MS);
	assert_int_equal(state_of(qp), SOFT_QP_CONNECTED);
	ticks_pass(qp, 3 * SOFT_TICK_MS);
	assert_int_equal(state_of(qp), SOFT_QP_ERROR);
	stall_close(&world, fd, qp);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(credit_that_was_not_read_fails_no_message),
		cmocka_unit_test(time_without_a_look_fails_no_message),
		cmocka_unit_test(message_behind_a_long_write_has_its_time),
		cmocka_unit_test(message_behind_a_read_has_its_time),
		cmocka_unit_test(message_behind_a_read_that_rests_has_its_time),
		cmocka_unit_test(
			message_behind_a_read_that_comes_late_has_its_time),
		cmocka_unit_test(message_to_a_peer_that_only_writes_fails),
		cmocka_unit_test(message_behind_a_read_that_nobody_answers_fails),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
