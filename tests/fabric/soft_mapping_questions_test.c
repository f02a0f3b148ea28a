/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_mapping_questions_test.c - a peer asks for a mapping, and is answered, by hand:
 * only what was asked may be answered, and only so much may be asked.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "endpoint.h"
#include "tests/fabric/intruder.h"
#include "tests/fabric/moved.h"

#define PAGE 4096u

static void answer_no(struct local_peer *peer, uint32_t rkey)
{
	const struct soft_frame answer = { .opcode = SOFT_MAP_ANSWER,
					   .status = SOFT_REFUSED_OTHER,
					   .rkey = rkey };
	const uint8_t body[SOFT_MAP_BYTES] = { 0 };

	local_peer_send(peer, &answer, NULL);
	send(peer->fd, body, sizeof(body), MSG_NOSIGNAL);
}

/* WRITEs under a key that only the peer may know. */
static void write_post(struct test_pair *pair, struct rbx_qp *qp, uint32_t rkey,
		       uint32_t length_bytes)
{
	struct rbx_sge sge = { (uintptr_t)pair->target_memory, length_bytes,
			       pair->target_mr->lkey };
	struct rbx_wr wr = { .opcode = RBX_OP_WRITE, .rkey = rkey,
			     .sges = &sge, .sge_count = 1,
			     .flags = RBX_WR_SIGNALED };
	struct rbx_wr *bad;

	assert_int_equal(pair->ops->post_send(qp, &wr, &bad), 0);
}

/* The thread of the device has read all that the peer sent before. */
static void expect_read_so_far(struct test_pair *pair, struct local_peer *peer)
{
	const struct soft_frame request = {
		.opcode = SOFT_WRITE,
		.sequence = peer->sequence++,
		.length_bytes = 1,
		.rkey = pair->target_mr->rkey,
		.remote_addr = (uintptr_t)pair->target_memory + TARGET_BYTES - 1,
	};
	volatile uint8_t *last = &pair->target[TARGET_BYTES - 1];
	uint64_t deadline_ms = test_now_ms() + 30000;

	*last = 0;
	local_peer_send(peer, &request, "\1");
	while (!*last && test_now_ms() < deadline_ms)
		usleep(1000);
	assert_int_equal(*last, 1);
}

/* It answers what it has heard, then what still waits behind a full socket: each such
 * answer would make room for another question, and those have a bound. */
static void answer_to_a_question_that_was_not_sent_cut_off(void **state)
{
	struct intruder intruder;
	struct soft_frame ask;
	struct test_pair pair;

	(void)state;
	test_pair_open(&pair, NULL);
	intruder_come(&intruder, &pair, NULL);
	write_post(&pair, intruder.qp, 0x10001, TARGET_BYTES / 2);
	assert_true(local_peer_hear(&intruder.peer, &ask, NULL, 0));
	assert_int_equal(ask.opcode, SOFT_MAP_ASK);
	assert_int_equal(ask.rkey, 0x10001);
	answer_no(&intruder.peer, 0x10001);
	expect_read_so_far(&pair, &intruder.peer);
	assert_null(intruder.qp->cut_off);
	write_post(&pair, intruder.qp, 0x10002, PAGE);
	answer_no(&intruder.peer, 0x10002);
	assert_int_equal(test_wait(&pair, pair.server_cq).status, -EREMOTEIO);
	assert_string_equal(intruder.qp->cut_off,
			    "offers a mapping that was not asked for");
	assert_int_equal(test_wait(&pair, pair.server_cq).status, -ECANCELED);
	intruder_go(&intruder, &pair);
	test_pair_close(&pair);
}

/* Of which credit has to be asked. */
static void sharing_intruder_come(struct intruder *intruder, struct test_pair *pair)
{
	const struct soft_hello hello = {
		.version = SOFT_VERSION,
		.type = SOFT_HELLO,
		.send_depth_count = 8,
		.shares_receives = true,
	};
	struct soft_wire_hello wire;

	assert_int_equal(local_peer_reach(&intruder->peer, pair->listener->address), 0);
	send(intruder->peer.fd, &wire, soft_hello_encode(&hello, &wire), MSG_NOSIGNAL);
	intruder_accept(intruder, pair, NULL);
}

static void message_post(struct test_pair *pair, struct rbx_qp *qp)
{
	struct rbx_wr wr = { .opcode = RBX_OP_SEND, .flags = RBX_WR_SIGNALED };
	struct rbx_wr *bad;

	assert_int_equal(pair->ops->post_send(qp, &wr, &bad), 0);
}

/* As many as it may, while as much as can be of ours waits before the answers. */
static void questions_behind_all_of_ours_answered(void **state)
{
	struct intruder intruder;
	struct test_pair pair;
	struct soft_frame frame;
	uint32_t i;

	(void)state;
	test_pair_open(&pair, NULL);
	sharing_intruder_come(&intruder, &pair);
	write_post(&pair, intruder.qp, 0x10001, TARGET_BYTES / 2);
	assert_true(local_peer_hear(&intruder.peer, &frame, NULL, 0));
	answer_no(&intruder.peer, 0x10001);
	expect_read_so_far(&pair, &intruder.peer);
	for (i = 0; i < SOFT_MAPS_ASKED_MAX; i++)
		write_post(&pair, intruder.qp, 0x10002 + i, PAGE);
	message_post(&pair, intruder.qp); /* asks for credit when output is next gathered */
	expect_read_so_far(&pair, &intruder.peer);
	for (i = 0; i < SOFT_MAPS_ASKED_MAX; i++) {
		frame = (struct soft_frame){ .opcode = SOFT_MAP_ASK, .rkey = 0x10002 + i };
		local_peer_send(&intruder.peer, &frame, NULL);
	}
	expect_read_so_far(&pair, &intruder.peer);
	assert_null(intruder.qp->cut_off);
	local_peer_send(&intruder.peer, &frame, NULL); /* one more than it may */
	assert_int_equal(test_wait(&pair, pair.server_cq).status, -EREMOTEIO);
	assert_string_equal(intruder.qp->cut_off, "asks for more mappings than it may");
	intruder_go(&intruder, &pair);
	test_pair_close(&pair);
}

/* No right is needed to be told that there is no such key. */
static void answers_are_nothing_that_moves(void **state)
{
	uint64_t deadline_ms = test_now_ms() + 30000;
	struct intruder intruder;
	struct test_pair pair;
	uint32_t i;

	(void)state;
	test_pair_open(&pair, NULL);
	intruder_come(&intruder, &pair, NULL);
	for (i = 0; i < 2 * SOFT_MAPS_ASKED_MAX; i++)
		assert_int_equal(local_peer_ask(&intruder.peer, 0x10001), 0);
	expect_read_so_far(&pair, &intruder.peer); /* by a WRITE of one byte */
	while (moved_bytes_of(intruder.qp) != 1 && test_now_ms() < deadline_ms)
		usleep(1000);
	assert_int_equal(moved_bytes_of(intruder.qp), 1);
	intruder_go(&intruder, &pair);
	test_pair_close(&pair);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(answer_to_a_question_that_was_not_sent_cut_off),
		cmocka_unit_test(questions_behind_all_of_ours_answered),
		cmocka_unit_test(answers_are_nothing_that_moves),
	};

	/* Only a device that maps is asked. */
	setenv("RBX_TEST_FABRIC", "soft", 1);
	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
