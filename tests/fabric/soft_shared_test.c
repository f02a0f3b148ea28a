/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_shared_test.c - peers that break the rules of shared receives on the soft device,
 * or leave in the middle: they are cut off, and what they had is others'.
 */
#include <unistd.h>

#include "tests/fabric/shared_peer.h"

static void rule_breaker_cut_off(void **state)
{
	const struct soft_frame message = { .opcode = SOFT_SEND,
					    .sequence = SOFT_FIRST_SEQUENCE };
	struct world world;
	struct rbx_qp *qp;
	int fd, which;

	(void)state;
	world_open(&world);
	for (which = 0; which < 6; which++) {
		fd = shared_connect(&world, &qp);
		post(&world, 1);
		switch (which) {
		case 0: ask(fd, 0); break; /* for none */
		case 1: ask(fd, 9); break; /* for more than its queue is deep */
		case 2: ask(fd, UINT32_MAX); break;
		case 3: /* twice for the same */
			ask(fd, 2);
			ask(fd, 2);
			break;
		case 4: frame_send(fd, message, 0); break; /* did not ask */
		default: /* a field that is not its */
			frame_send(fd, (struct soft_frame){
					   .opcode = SOFT_ASK_CREDIT,
					   .credit = 1, .length_bytes = 1 }, 0);
		}
		assert_true(socket_is_closed(fd));
		assert_non_null(cut_off_of(&world.pair, qp));
		close(fd);
		world.pair.ops->destroy_qp(qp);
		/* What it was promised is there: nothing is lost. */
		fd = shared_connect(&world, &qp);
		ask(fd, 1);
		expect_credit(fd, 1);
		frame_send(fd, message, 0);
		assert_int_equal(test_wait(&world.pair, world.pair.server_cq)
					 .status, 0);
		close(fd);
		world.pair.ops->destroy_qp(qp);
	}
	world_close(&world);
}

static void ask_of_receives_that_are_not_shared_cut_off(void **state)
{
	struct test_pair pair;
	struct rbx_qp *qp;
	int fd;

	(void)state;
	test_pair_open(&pair, NULL);
	fd = hostile_connect(&pair, &qp);
	ask(fd, 1);
	assert_true(socket_is_closed(fd));
	assert_non_null(cut_off_of(&pair, qp));
	close(fd);
	pair.ops->destroy_qp(qp);
	expect_served(&pair);
	test_pair_close(&pair);
}

/* It was promised the only receive, and leaves without a message. */
static void promise_to_one_that_leaves_goes_to_who_waits(void **state)
{
	struct rbx_qp *qps[2];
	struct world world;
	int fds[2], round, i;

	(void)state;
	world_open(&world);
	post(&world, 1);
	for (round = 0; round < 10; round++) {
		for (i = 0; i < 2; i++)
			fds[i] = shared_connect(&world, &qps[i]);
		ask(fds[0], 1);
		expect_credit(fds[0], 1);
		ask(fds[1], 1);
		if (round % 2) {
			usleep(1000);
			world.pair.ops->destroy_qp(qps[0]);
		}
		close(fds[0]);
		expect_credit(fds[1], 1);
		if (round % 2 == 0)
			world.pair.ops->destroy_qp(qps[0]);
		world.pair.ops->destroy_qp(qps[1]);
		close(fds[1]);
	}
	world_close(&world);
}

static void half_a_message_then_death_completes_its_receive_alone(void **state)
{
	struct rbx_qp *qps[2];
	struct world world;
	struct rbx_wc wc;
	int fds[2], i;

	(void)state;
	world_open(&world);
	post(&world, 1);
	post(&world, 2);
	for (i = 0; i < 2; i++)
		fds[i] = shared_connect(&world, &qps[i]);
	ask(fds[0], 1);
	expect_credit(fds[0], 1);
	frame_send(fds[0], (struct soft_frame){ .opcode = SOFT_SEND,
						.sequence = SOFT_FIRST_SEQUENCE,
						.length_bytes = 100 }, 50);
	close(fds[0]);
	wc = test_wait(&world.pair, world.pair.server_cq);
	assert_int_equal(wc.status, -ECANCELED);
	assert_int_equal(wc.wr_id, 1);
	assert_ptr_equal(wc.qp, qps[0]);
	test_nothing(&world.pair, world.pair.server_cq);
	ask(fds[1], 2); /* more than there are */
	expect_credit(fds[1], 1);
	post(&world, 3);
	expect_credit(fds[1], 2);
	close(fds[1]);
	for (i = 0; i < 2; i++)
		world.pair.ops->destroy_qp(qps[i]);
	world_close(&world);
}

static void many_asked_for_at_once_cut_off(void **state)
{
	struct world world;
	struct rbx_qp *qp;
	int fd;

	(void)state;
	world_open(&world);
	fd = deep_connect(&world, &qp);
	ask(fd, SOFT_ASK_MAX + 1);
	assert_true(socket_is_closed(fd));
	assert_non_null(cut_off_of(&world.pair, qp));
	close(fd);
	world.pair.ops->destroy_qp(qp);
	world_close(&world);
}

static void asks_again_before_it_has_got_all_cut_off(void **state)
{
	struct world world;
	struct rbx_qp *qp;
	int fd;

	(void)state;
	world_open(&world);
	post(&world, 1);
	fd = deep_connect(&world, &qp);
	ask(fd, 2);
	expect_credit(fd, 1);
	ask(fd, 3);
	assert_true(socket_is_closed(fd));
	assert_non_null(cut_off_of(&world.pair, qp));
	close(fd);
	world.pair.ops->destroy_qp(qp);
	world_close(&world);
}

static void expect_cut_off(struct world *world, struct rbx_qp *qp,
			   const char *reason)
{
	assert_int_equal(test_wait(&world->pair, world->pair.server_cq).status,
			 -EREMOTEIO);
	assert_string_equal(qp->cut_off, reason);
}

/* One that has heard no question; one that gives more than the question was for. */
static void credit_that_was_not_asked_for_cut_off(void **state)
{
	static const uint32_t lengths_bytes[] = { TARGET_BYTES, 0 };
	uint8_t bytes[SOFT_FRAME_BYTES];
	struct soft_frame ask;
	struct world world;
	struct rbx_qp *qp;
	int fd, i;

	(void)state;
	world_open(&world);
	for (i = 0; i < 2; i++) {
		fd = sharing_connect(&world, &qp);
		message_post(&world, qp, lengths_bytes[i]);
		assert_int_equal(recv(fd, bytes, sizeof(bytes), MSG_WAITALL),
				 sizeof(bytes));
		assert_null(soft_frame_decode(bytes, &ask));
		assert_int_equal(ask.opcode, i ? SOFT_ASK_CREDIT : SOFT_WRITE);
		give(fd, 1 + (uint32_t)i);
		expect_cut_off(&world, qp, "gives credit that was not asked for");
		close(fd);
		world.pair.ops->destroy_qp(qp);
	}
	world_close(&world);
}

/* The second message is behind so much that it does not leave soon. */
static void credit_is_asked_for_what_leaves_soon(void **state)
{
	uint8_t bytes[SOFT_FRAME_BYTES];
	struct soft_frame question;
	struct rbx_wr *bad;
	struct world world;
	struct rbx_qp *qp;
	int fd;

	(void)state;
	world_open(&world);
	const struct rbx_sge sge = { (uintptr_t)world.pair.target_memory,
				     SOFT_ASK_BYTES, world.pair.target_mr->lkey };
	struct rbx_wr second = { .opcode = RBX_OP_SEND };
	struct rbx_wr between = { .opcode = RBX_OP_WRITE, .sges = &sge,
				  .sge_count = 1, .next = &second };
	struct rbx_wr first = { .opcode = RBX_OP_SEND, .next = &between };

	fd = sharing_connect(&world, &qp);
	assert_int_equal(world.pair.ops->post_send(qp, &first, &bad), 0);
	assert_int_equal(recv(fd, bytes, sizeof(bytes), MSG_WAITALL),
			 sizeof(bytes));
	assert_null(soft_frame_decode(bytes, &question));
	assert_int_equal(question.opcode, SOFT_ASK_CREDIT);
	assert_int_equal(question.credit, 1);
	close(fd);
	world.pair.ops->destroy_qp(qp);
	world_close(&world);
}

/* The next frame, whose payload is dropped. */
static void expect_frame(int fd, uint8_t opcode, size_t payload_bytes)
{
	static uint8_t bytes[1 << 20];
	struct soft_frame frame;
	size_t more;

	assert_int_equal(recv(fd, bytes, SOFT_FRAME_BYTES, MSG_WAITALL),
			 SOFT_FRAME_BYTES);
	assert_null(soft_frame_decode(bytes, &frame));
	assert_int_equal(frame.opcode, opcode);
	for (; payload_bytes; payload_bytes -= more) {
		more = payload_bytes < sizeof(bytes) ? payload_bytes : sizeof(bytes);
		assert_int_equal(recv(fd, bytes, more, MSG_WAITALL), more);
	}
}

/* What the peer promises it keeps from others while all that comes. */
static void credit_is_not_asked_for_before_long_writes(void **state)
{
	struct rbx_wr *bad;
	struct world world;
	struct rbx_qp *qp;
	int fd, i;

	(void)state;
	world_open(&world);
	const struct rbx_sge sge = { (uintptr_t)world.pair.target_memory,
				     TARGET_BYTES, world.pair.target_mr->lkey };
	struct rbx_wr wrs[4] = { 0 };

	for (i = 0; i < 3; i++)
		wrs[i] = (struct rbx_wr){ .opcode = RBX_OP_WRITE, .sges = &sge,
					  .sge_count = 1, .next = &wrs[i + 1] };
	wrs[3].opcode = RBX_OP_SEND;
	fd = sharing_connect(&world, &qp);
	assert_int_equal(world.pair.ops->post_send(qp, wrs, &bad), 0);
	for (i = 0; i < 3; i++)
		expect_frame(fd, SOFT_WRITE, TARGET_BYTES);
	expect_frame(fd, SOFT_ASK_CREDIT, 0);
	close(fd);
	world.pair.ops->destroy_qp(qp);
	world_close(&world);
}

/* Behind which the peer's answer has to stand. */
static void credit_is_not_asked_for_before_a_long_read_is_answered(void **state)
{
	static const uint8_t bytes[1 << 20];
	struct world world;
	struct rbx_qp *qp;
	int fd, i;

	(void)state;
	world_open(&world);
	fd = sharing_connect(&world, &qp);
	read_and_message_post(&world, qp);
	expect_frame(fd, SOFT_READ, 0);
	/* What is asked of it now it answers behind what it has asked. */
	frame_send(fd, (struct soft_frame){ .opcode = SOFT_WRITE,
					    .flags = SOFT_ACK_WANTED,
					    .sequence = SOFT_FIRST_SEQUENCE }, 0);
	expect_frame(fd, SOFT_ACK, 0);
	frame_send(fd, (struct soft_frame){ .opcode = SOFT_RESPONSE,
					    .sequence = SOFT_FIRST_SEQUENCE,
					    .length_bytes = TARGET_BYTES }, 0);
	for (i = 0; i < (int)(TARGET_BYTES / sizeof(bytes)) - 1; i++)
		assert_int_equal(send(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	expect_frame(fd, SOFT_ASK_CREDIT, 0);
	close(fd);
	world.pair.ops->destroy_qp(qp);
	world_close(&world);
}

/* Two wait while there is none: of two that are posted at once each is promised one. */
static void receives_are_promised_in_turns(void **state)
{
	struct rbx_recv_wr *bad;
	struct rbx_qp *qps[2];
	struct world world;
	int fds[2], i;

	(void)state;
	world_open(&world);
	struct rbx_sge sge = { (uintptr_t)world.pair.target_memory, PAGE,
			       world.pair.target_mr->lkey };
	struct rbx_recv_wr second = { .sges = &sge, .sge_count = 1 };
	struct rbx_recv_wr first = { .next = &second, .sges = &sge, .sge_count = 1 };

	for (i = 0; i < 2; i++) {
		fds[i] = shared_connect(&world, &qps[i]);
		ask(fds[i], 8);
		wait_until_waiting(&world, (uint32_t)i + 1);
	}
	assert_int_equal(world.pair.ops->post_srq_recv(world.srq, &first, &bad), 0);
	for (i = 0; i < 2; i++) {
		expect_credit(fds[i], 1);
		close(fds[i]);
		world.pair.ops->destroy_qp(qps[i]);
	}
	wait_until_waiting(&world, 0);
	world_close(&world);
}

static void hello_of_unknown_flags_refused(void **state)
{
	struct soft_wire_hello wire = { 0 };
	const struct soft_hello good = {
		.version = SOFT_VERSION,
		.type = SOFT_REJECT,
		.shares_receives = true, /* nothing of a REJECT's */
	};
	struct soft_hello hello = good;

	(void)state;
	soft_hello_encode(&hello, &wire);
	assert_non_null(soft_hello_decode((uint8_t *)&wire, &hello));
	hello = good;
	hello.type = SOFT_HELLO;
	hello.send_depth_count = 1;
	soft_hello_encode(&hello, &wire);
	assert_null(soft_hello_decode((uint8_t *)&wire, &hello));
	assert_true(hello.shares_receives);
	wire.flags = 2;
	assert_non_null(soft_hello_decode((uint8_t *)&wire, &hello));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule_breaker_cut_off),
		cmocka_unit_test(ask_of_receives_that_are_not_shared_cut_off),
		cmocka_unit_test(promise_to_one_that_leaves_goes_to_who_waits),
		cmocka_unit_test(half_a_message_then_death_completes_its_receive_alone),
		cmocka_unit_test(many_asked_for_at_once_cut_off),
		cmocka_unit_test(asks_again_before_it_has_got_all_cut_off),
		cmocka_unit_test(credit_that_was_not_asked_for_cut_off),
		cmocka_unit_test(credit_is_asked_for_what_leaves_soon),
		cmocka_unit_test(credit_is_not_asked_for_before_long_writes),
		cmocka_unit_test(
			credit_is_not_asked_for_before_a_long_read_is_answered),
		cmocka_unit_test(receives_are_promised_in_turns),
		cmocka_unit_test(hello_of_unknown_flags_refused),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
