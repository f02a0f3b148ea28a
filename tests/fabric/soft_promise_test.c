/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_promise_test.c - peers that keep shared receives which they were promised on the
 * soft device: those that others wait long for are cut off, and no others.
 */
#include "fabric/soft/deadlines.h"
#include "fabric/soft/shared_receives.h"
#include "tests/fabric/shared_peer.h"

/* Two peers, and receives for the first alone. */
struct holder {
	struct world world;
	struct rbx_qp *qps[2];
	int fds[2];
};

static void holder_open(struct holder *holder, bool served)
{
	world_open(&holder->world);
	post(&holder->world, 1);
	post(&holder->world, 2);
	holder->fds[0] = peer_connect(&holder->world, 8, false, served,
				      &holder->qps[0]);
	holder->fds[1] = shared_connect(&holder->world, &holder->qps[1]);
}

static void holder_close(struct holder *holder)
{
	int i;

	for (i = 0; i < 2; i++) {
		close(holder->fds[i]);
		holder->world.pair.ops->destroy_qp(holder->qps[i]);
	}
	world_close(&holder->world);
}

/* The thread of the device has promised the first peer so many, which may not hear it. */
static void promise_wait(struct holder *holder, uint32_t count)
{
	struct soft_qp *qp = soft_qp_of(holder->qps[0]);
	uint64_t deadline_ms = test_now_ms() + 30000;
	uint32_t promised;

	do {
		soft_qp_lock(qp);
		promised = qp->recv_posted;
		soft_qp_unlock(qp);
	} while (promised != count && test_now_ms() < deadline_ms);
	assert_int_equal(promised, count);
}

static void frames_send(int fd, struct soft_frame frame, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++, frame.sequence++)
		frame_send(fd, frame, 0);
}

/* As if the thread of the device had looked last so long ago. Who waits has done so for
 * longer than anybody may keep a promise. */
static void time_pass(struct soft_qp *qp, uint32_t ms)
{
	soft_qp_check_deadlines(qp, soft_now_ns() + 2000000ull * SOFT_PROMISE_MS,
				ms * 1000000ull);
}

/* It is promised all that there are, and the other one asks in vain. */
static void keep_from_the_other(const struct holder *holder)
{
	ask(holder->fds[0], 2);
	expect_credit(holder->fds[0], 2);
	ask(holder->fds[1], 1);
}

/* It has them all, and sends nothing; the other one waits for as long as it takes. */
static void peer_that_keeps_receives_from_others_cut_off(void **state)
{
	struct holder holder;

	(void)state;
	holder_open(&holder, true);
	keep_from_the_other(&holder);
	assert_true(is_readable(holder.fds[1], 30000));
	expect_credit(holder.fds[1], 1);
	assert_true(socket_is_closed(holder.fds[0]));
	assert_non_null(cut_off_of(&holder.world.pair, holder.qps[0]));
	holder_close(&holder);
}

static void peer_that_sends_byte_by_byte_cut_off(void **state)
{
	struct holder holder;
	int bytes;

	(void)state;
	holder_open(&holder, true);
	keep_from_the_other(&holder);
	frame_send(holder.fds[0], (struct soft_frame){
			   .opcode = SOFT_SEND, .sequence = SOFT_FIRST_SEQUENCE,
			   .length_bytes = PAGE }, 1);
	for (bytes = 0; bytes < 600 && !is_readable(holder.fds[1], 50); bytes++)
		send(holder.fds[0], "", 1, MSG_NOSIGNAL);
	assert_true(is_readable(holder.fds[1], 0));
	expect_credit(holder.fds[1], 1);
	assert_true(socket_is_closed(holder.fds[0]));
	assert_string_equal(cut_off_of(&holder.world.pair, holder.qps[0]),
			    "keeps shared receives that others wait for");
	holder_close(&holder);
}

/* What it has asked for stands behind answers that it does not read. */
static void peer_that_does_not_read_cut_off(void **state)
{
	struct holder holder;
	struct soft_frame read = { .opcode = SOFT_READ,
				   .sequence = SOFT_FIRST_SEQUENCE,
				   .length_bytes = TARGET_BYTES };

	(void)state;
	holder_open(&holder, true);
	read.rkey = holder.world.pair.target_mr->rkey;
	read.remote_addr = (uintptr_t)holder.world.pair.target_memory;
	frames_send(holder.fds[0], read, 8);
	ask(holder.fds[0], 2);
	promise_wait(&holder, 2);
	ask(holder.fds[1], 1);
	assert_true(is_readable(holder.fds[1], 30000));
	expect_credit(holder.fds[1], 1);
	assert_string_equal(cut_off_of(&holder.world.pair, holder.qps[0]),
			    "keeps shared receives that others wait for");
	holder_close(&holder);
}

/* Its error cannot be told before the rest of a WRITE, which it does not read. */
static void refused_peer_keeps_no_receives(void **state)
{
	const struct soft_frame bad_write = { .opcode = SOFT_WRITE,
					      .sequence = SOFT_FIRST_SEQUENCE,
					      .length_bytes = 1 };
	struct holder holder;

	(void)state;
	holder_open(&holder, true);
	message_post(&holder.world, holder.qps[0], TARGET_BYTES);
	ask(holder.fds[0], 2);
	promise_wait(&holder, 2);
	frame_send(holder.fds[0], bad_write, 0);
	ask(holder.fds[1], 1);
	assert_true(is_readable(holder.fds[1], 30000));
	expect_credit(holder.fds[1], 1);
	assert_int_equal(state_of(holder.qps[0]), SOFT_QP_REFUSING);
	holder_close(&holder);
}

/* Its message is there, and the program does not poll. */
static void message_that_was_not_read_is_no_fault_of_its_peer(void **state)
{
	const struct soft_frame message = { .opcode = SOFT_SEND,
					    .sequence = SOFT_FIRST_SEQUENCE };
	struct holder holder;
	int i;

	(void)state;
	holder_open(&holder, false);
	ask(holder.fds[0], 2);
	while (!is_readable(holder.fds[0], 1))
		test_nothing(&holder.world.pair, holder.world.pair.server_cq);
	expect_credit(holder.fds[0], 2);
	ask(holder.fds[1], 1);
	wait_until_waiting(&holder.world, 1);
	frames_send(holder.fds[0], message, 2);
	assert_false(is_readable(holder.fds[1], 2 * SOFT_PROMISE_MS));
	for (i = 0; i < 2; i++)
		assert_int_equal(test_wait(&holder.world.pair,
					   holder.world.pair.server_cq).status, 0);
	holder_close(&holder);
}

/* A half of its message is there, which nobody has read for as long as a promise lasts. */
static void message_read_late_is_no_fault_of_its_peer(void **state)
{
	const struct soft_frame message = { .opcode = SOFT_SEND,
					    .sequence = SOFT_FIRST_SEQUENCE,
					    .length_bytes = 2 };
	struct holder holder;
	struct soft_qp *qp;
	uint32_t ms;

	(void)state;
	holder_open(&holder, false);
	qp = soft_qp_of(holder.qps[0]);
	ask(holder.fds[0], 2);
	while (!is_readable(holder.fds[0], 1))
		test_nothing(&holder.world.pair, holder.world.pair.server_cq);
	expect_credit(holder.fds[0], 2);
	ask(holder.fds[1], 1);
	wait_until_waiting(&holder.world, 1);
	frame_send(holder.fds[0], message, 1);
	assert_true(is_readable(qp->fd, 30000));
	for (ms = 0; ms < 2 * SOFT_PROMISE_MS; ms += SOFT_TICK_MS)
		time_pass(qp, SOFT_TICK_MS);
	test_nothing(&holder.world.pair, holder.world.pair.server_cq);
	time_pass(qp, SOFT_TICK_MS);
	assert_int_equal(state_of(holder.qps[0]), SOFT_QP_CONNECTED);
	holder_close(&holder);
}

/* As the thread of the device sees it when the process has been stopped. */
static void time_without_a_look_is_held_against_nobody(void **state)
{
	struct holder holder;
	struct soft_qp *qp;
	uint32_t ms;

	(void)state;
	holder_open(&holder, true);
	qp = soft_qp_of(holder.qps[0]);
	keep_from_the_other(&holder);
	wait_until_waiting(&holder.world, 1);
	time_pass(qp, SOFT_TICK_MS);
	time_pass(qp, 10 * SOFT_PROMISE_MS);
	assert_int_equal(state_of(holder.qps[0]), SOFT_QP_CONNECTED);
	for (ms = 0; ms <= SOFT_PROMISE_MS; ms += SOFT_TICK_MS)
		time_pass(qp, SOFT_TICK_MS);
	assert_int_equal(state_of(holder.qps[0]), SOFT_QP_ERROR);
	holder_close(&holder);
}

/* What a connection has moved, and the same with what the system still holds. */
struct moved {
	uint64_t gone_bytes, taken_bytes;
};

static struct moved moved_of(struct soft_qp *qp)
{
	struct moved moved;

	soft_qp_lock(qp);
	moved = (struct moved){ soft_qp_moved(qp), qp->moved_bytes };
	soft_qp_unlock(qp);
	return moved;
}

static bool has_moved(struct soft_qp *qp, const struct moved *before)
{
	const int64_t enough_bytes = SOFT_PROMISE_BYTES;
	const struct moved now = moved_of(qp);

	return (int64_t)(now.gone_bytes - before->gone_bytes) >= enough_bytes &&
	       (int64_t)(now.taken_bytes - before->taken_bytes) >= enough_bytes;
}

/* Until it has moved so much more than before. */
static void moved_wait(struct soft_qp *qp, const struct moved *before, int reads_fd)
{
	static uint8_t bytes[SOFT_PROMISE_BYTES];
	uint64_t deadline_ms = test_now_ms() + 30000;

	while (!has_moved(qp, before) && test_now_ms() < deadline_ms)
		if (reads_fd >= 0)
			(void)!recv(reads_fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	assert_true(test_now_ms() < deadline_ms);
}

/* Six tenths of the time that it has each, with a mebibyte between: then it has all of it. */
static void expect_kept_while_it_moves(struct holder *holder, int sends_fd, int reads_fd)
{
	static const uint8_t bytes[SOFT_PROMISE_BYTES];
	struct soft_qp *qp = soft_qp_of(holder->qps[0]);
	uint32_t round, ms;
	struct moved before;

	for (round = 0; round < 4; round++) {
		before = moved_of(qp);
		if (sends_fd >= 0)
			assert_int_equal(send(sends_fd, bytes, sizeof(bytes), 0),
					 sizeof(bytes));
		moved_wait(qp, &before, reads_fd);
		for (ms = 0; ms < SOFT_PROMISE_MS * 6 / 10; ms += SOFT_TICK_MS)
			time_pass(qp, SOFT_TICK_MS);
		assert_int_equal(state_of(holder->qps[0]), SOFT_QP_CONNECTED);
	}
	/* What the system has may go on for a moment. */
	for (ms = 0; ms < 100 * SOFT_PROMISE_MS &&
		     state_of(holder->qps[0]) == SOFT_QP_CONNECTED;
	     ms += SOFT_TICK_MS) {
		time_pass(qp, SOFT_TICK_MS);
		usleep(1000);
	}
	assert_int_equal(state_of(holder->qps[0]), SOFT_QP_ERROR);
}

/* Its message takes longer than a second, as the network carries no more. */
static void peer_with_a_long_message_kept_while_it_comes(void **state)
{
	struct holder holder;

	(void)state;
	holder_open(&holder, true);
	keep_from_the_other(&holder);
	wait_until_waiting(&holder.world, 1);
	frame_send(holder.fds[0], (struct soft_frame){
			   .opcode = SOFT_WRITE, .sequence = SOFT_FIRST_SEQUENCE,
			   .rkey = holder.world.pair.target_mr->rkey,
			   .remote_addr = (uintptr_t)holder.world.pair.target_memory,
			   .length_bytes = TARGET_BYTES }, 0);
	expect_kept_while_it_moves(&holder, holder.fds[0], -1);
	holder_close(&holder);
}

/* What it was promised stands behind answers that the network carries slowly. */
static void peer_kept_while_it_reads_what_stands_before_its_promise(void **state)
{
	struct soft_frame read = { .opcode = SOFT_READ,
				   .sequence = SOFT_FIRST_SEQUENCE,
				   .length_bytes = TARGET_BYTES };
	struct holder holder;

	(void)state;
	holder_open(&holder, true);
	read.rkey = holder.world.pair.target_mr->rkey;
	read.remote_addr = (uintptr_t)holder.world.pair.target_memory;
	frames_send(holder.fds[0], read, 8);
	ask(holder.fds[0], 2);
	promise_wait(&holder, 2);
	ask(holder.fds[1], 1);
	wait_until_waiting(&holder.world, 1);
	expect_kept_while_it_moves(&holder, -1, holder.fds[0]);
	holder_close(&holder);
}

/* Two others take turns with the other receive: one of them waits, but never for long. */
static void slow_peer_kept_while_the_line_moves(void **state)
{
	struct soft_frame message = { .opcode = SOFT_SEND };
	struct holder holder;
	struct rbx_qp *qp;
	uint32_t turn, i;
	int fds[2];

	(void)state;
	holder_open(&holder, true);
	ask(holder.fds[0], 1);
	expect_credit(holder.fds[0], 1);
	fds[0] = holder.fds[1];
	fds[1] = shared_connect(&holder.world, &qp);
	ask(fds[0], 1);
	expect_credit(fds[0], 1);
	ask(fds[1], 1);
	wait_until_waiting(&holder.world, 1);
	for (turn = 0; turn < 2 * SOFT_PROMISE_MS / 100; turn++) {
		i = turn / 2; /* messages that it has sent */
		message.sequence = SOFT_FIRST_SEQUENCE + i;
		frame_send(fds[turn % 2], message, 0);
		assert_int_equal(test_wait(&holder.world.pair,
					   holder.world.pair.server_cq).status, 0);
		ask(fds[turn % 2], i + 2);
		wait_until_waiting(&holder.world, 2);
		usleep(100000);
		post(&holder.world, 3);
		expect_credit(fds[1 - turn % 2], turn / 2 + 1 + turn % 2);
	}
	message.sequence = SOFT_FIRST_SEQUENCE;
	frame_send(holder.fds[0], message, 0);
	assert_int_equal(test_wait(&holder.world.pair,
				   holder.world.pair.server_cq).status, 0);
	close(fds[1]);
	holder.world.pair.ops->destroy_qp(qp);
	holder_close(&holder);
}

/* Nobody had to wait while half of all numbers went by: what it had then is not old. */
static void promise_after_very_many_messages_is_a_new_one(void **state)
{
	struct holder holder;
	struct soft_qp *qp;

	(void)state;
	holder_open(&holder, true);
	keep_from_the_other(&holder);
	wait_until_waiting(&holder.world, 1);
	qp = soft_qp_of(holder.qps[0]);
	soft_qp_lock(qp);
	qp->promise_seen.kept_ns = SOFT_PROMISE_MS * 1000000ull;
	qp->promise_seen.moved_bytes = soft_qp_moved(qp);
	qp->promise_seen.promised = qp->recv_done - (1u << 31) - 1;
	soft_qp_unlock(qp);
	time_pass(qp, SOFT_TICK_MS);
	assert_int_equal(state_of(holder.qps[0]), SOFT_QP_CONNECTED);
	holder_close(&holder);
}

/* READs of nothing, which need no right to anything, and their answers. */
static void read_nothing(int fd, uint32_t *sequence, uint32_t times)
{
	struct soft_frame read = { .opcode = SOFT_READ };
	uint8_t answers[8 * SOFT_FRAME_BYTES];

	for (; times; times--, *sequence += 8) {
		read.sequence = *sequence;
		frames_send(fd, read, 8);
		if (recv(fd, answers, sizeof(answers), MSG_WAITALL) !=
		    sizeof(answers))
			return;
	}
}

/* Two MiB of headers for each half of a second. */
static void peer_that_moves_headers_alone_cut_off(void **state)
{
	const uint32_t times = 2 * SOFT_PROMISE_BYTES / (8 * SOFT_FRAME_BYTES);
	uint32_t round, ms, sequence = SOFT_FIRST_SEQUENCE;
	struct holder holder;
	struct soft_qp *qp;

	(void)state;
	holder_open(&holder, true);
	keep_from_the_other(&holder);
	wait_until_waiting(&holder.world, 1);
	qp = soft_qp_of(holder.qps[0]);
	for (round = 0; round < 3 && state_of(holder.qps[0]) == SOFT_QP_CONNECTED;
	     round++) {
		read_nothing(holder.fds[0], &sequence, times);
		for (ms = 0; ms < SOFT_PROMISE_MS / 2; ms += SOFT_TICK_MS)
			time_pass(qp, SOFT_TICK_MS);
	}
	/* Not by the time that passes after the last of them. */
	assert_int_equal(state_of(holder.qps[0]), SOFT_QP_ERROR);
	assert_true(is_readable(holder.fds[1], 30000));
	expect_credit(holder.fds[1], 1);
	assert_non_null(cut_off_of(&holder.world.pair, holder.qps[0]));
	holder_close(&holder);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(peer_that_keeps_receives_from_others_cut_off),
		cmocka_unit_test(peer_that_sends_byte_by_byte_cut_off),
		cmocka_unit_test(peer_that_does_not_read_cut_off),
		cmocka_unit_test(refused_peer_keeps_no_receives),
		cmocka_unit_test(message_that_was_not_read_is_no_fault_of_its_peer),
		cmocka_unit_test(message_read_late_is_no_fault_of_its_peer),
		cmocka_unit_test(time_without_a_look_is_held_against_nobody),
		cmocka_unit_test(peer_with_a_long_message_kept_while_it_comes),
		cmocka_unit_test(
			peer_kept_while_it_reads_what_stands_before_its_promise),
		cmocka_unit_test(slow_peer_kept_while_the_line_moves),
		cmocka_unit_test(promise_after_very_many_messages_is_a_new_one),
		cmocka_unit_test(peer_that_moves_headers_alone_cut_off),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
