/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * operations_test.c - receives that are lists, immediates, and what is refused.
 * SENDs that end a key are in invalidate_test.c.
 */
#include <errno.h>
#include <string.h>

#include "endpoint.h"
#include "tests/fabric/flagged.h"

#define NUMBER 0x01020304u /* reads differently backwards */

/* ---- Receives ----------------------------------------------------------------*/

static void message_of(struct test_pair *pair, uint32_t length_bytes)
{
	static const uint32_t lengths[4] = { 1, 100, 70000, 0 };
	struct rbx_sge sges[4];
	uint32_t i, left = length_bytes, from = 0;
	struct rbx_wc wc;

	memset(pair->target, 0xee, TARGET_BYTES);
	for (i = 0; i < 4; i++)
		sges[i] = at_target(pair, (4 - i) * (1u << 20), lengths[i]);
	assert_int_equal(post_list(pair, pair->server, sges, 4), 0);
	assert_int_equal(test_do(pair, RBX_OP_SEND, 0, 0, length_bytes), 0);
	wc = test_wait(pair, pair->server_cq);
	assert_int_equal(wc.status, 0);
	assert_int_equal(wc.opcode, RBX_OP_RECV);
	assert_int_equal(wc.flags, 0);
	assert_int_equal(wc.length_bytes, length_bytes);
	for (i = 0; i < 4; i++) {
		const uint8_t *at = pair->target + (4 - i) * (1u << 20);
		uint32_t bytes = left < lengths[i] ? left : lengths[i];

		assert_memory_equal(at, pair->local + from, bytes);
		assert_int_equal(at[bytes], 0xee);
		from += bytes;
		left -= bytes;
	}
}

static void receive_list_is_filled_in_order(void **state)
{
	static const uint32_t lengths[] = {
		0, 1, 2, 100, 101, 102, 5000, 40000, 70100, 70101,
	};
	struct test_pair pair;
	size_t i;

	(void)state;
	open_pair(&pair);
	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
		message_of(&pair, lengths[i]);
	test_pair_close(&pair);
}

static void message_longer_than_the_list_fails(void **state)
{
	struct rbx_sge sges[2];
	struct test_pair pair;

	(void)state;
	open_pair(&pair);
	sges[0] = at_target(&pair, RECEIVES_AT, 10);
	sges[1] = at_target(&pair, RECEIVES_AT + RECEIVE_BYTES, 10);
	assert_int_equal(post_list(&pair, pair.server, sges, 2), 0);
	assert_int_equal(test_do(&pair, RBX_OP_SEND, 0, 0, 21), -EREMOTEIO);
	assert_int_equal(test_wait(&pair, pair.server_cq).status, -EMSGSIZE);
	assert_int_equal(pair.target[RECEIVES_AT], 0);
	test_pair_close(&pair);
}

static void receive_that_is_not_possible_is_refused(void **state)
{
	struct rbx_sge sges[5];
	struct test_pair pair;
	int i;

	(void)state;
	open_pair(&pair);
	for (i = 0; i < 5; i++)
		sges[i] = at_target(&pair, RECEIVES_AT, 8);
	assert_int_equal(post_list(&pair, pair.server, sges, 5), -EINVAL);
	if (strcmp(test_fabric, "verbs")) { /* a NIC looks at keys later */
		sges[3].lkey ^= 0x10000; /* only the last of them is bad */
		assert_int_equal(post_list(&pair, pair.server, sges, 4),
				 -EFAULT);
		sges[3].lkey ^= 0x10000;
	}
	assert_int_equal(post_list(&pair, pair.server, sges, 4), 0);
	test_pair_close(&pair);
}

/* ---- Immediates --------------------------------------------------------------*/

static void send_with_immediate_brings_both(void **state)
{
	struct test_pair pair;
	struct rbx_wc wc;

	(void)state;
	open_pair(&pair);
	receive_one(&pair);
	assert_int_equal(do_flagged(&pair, RBX_OP_SEND, RBX_WR_IMMEDIATE,
				    NUMBER, 100), 0);
	wc = test_wait(&pair, pair.server_cq);
	assert_int_equal(wc.status, 0);
	assert_int_equal(wc.opcode, RBX_OP_RECV);
	assert_int_equal(wc.flags, RBX_WC_IMMEDIATE);
	assert_int_equal(wc.immediate, NUMBER);
	assert_int_equal(wc.length_bytes, 100);
	assert_memory_equal(pair.target + RECEIVES_AT, pair.local, 100);
	/* 0 is one, too. */
	receive_one(&pair);
	assert_int_equal(do_flagged(&pair, RBX_OP_SEND, RBX_WR_IMMEDIATE, 0, 0),
			 0);
	wc = test_wait(&pair, pair.server_cq);
	assert_int_equal(wc.flags, RBX_WC_IMMEDIATE);
	assert_int_equal(wc.immediate, 0);
	test_pair_close(&pair);
}

static void write_with_immediate_completes_a_receive(void **state)
{
	static const uint32_t lengths[] = { 0, 8, 100000 };
	struct test_pair pair;
	struct rbx_wc wc;
	size_t i;

	(void)state;
	open_pair(&pair);
	for (i = 0; i < 3; i++) {
		receive_one(&pair);
		assert_int_equal(do_flagged(&pair, RBX_OP_WRITE,
					    RBX_WR_IMMEDIATE, NUMBER,
					    lengths[i]), 0);
		wc = test_wait(&pair, pair.server_cq);
		assert_int_equal(wc.status, 0);
		assert_int_equal(wc.wr_id, 9);
		assert_int_equal(wc.opcode, RBX_OP_RECV_WRITE);
		assert_int_equal(wc.flags, RBX_WC_IMMEDIATE);
		assert_int_equal(wc.immediate, NUMBER);
		assert_int_equal(wc.length_bytes, lengths[i]);
		assert_memory_equal(pair.target, pair.local, lengths[i]);
		assert_int_equal(pair.target[RECEIVES_AT], 0);
	}
	test_pair_close(&pair);
}

static void write_with_immediate_waits_for_a_receive(void **state)
{
	struct test_pair pair;
	struct rbx_sge sge;
	struct rbx_wr wr;

	(void)state;
	open_pair(&pair);
	wr = test_wr(&pair, RBX_OP_WRITE, &sge, 0, 0, 8);
	wr.flags |= RBX_WR_IMMEDIATE;
	test_post(&pair, &wr);
	test_nothing(&pair, pair.client_cq);
	receive_one(&pair);
	assert_int_equal(test_wait(&pair, pair.client_cq).status, 0);
	assert_int_equal(test_wait(&pair, pair.server_cq).opcode,
			 RBX_OP_RECV_WRITE);
	test_pair_close(&pair);
}

static void write_with_immediate_needs_the_right(void **state)
{
	struct test_pair pair;
	struct rbx_sge sge;
	struct rbx_wr wr;
	int status;

	(void)state;
	open_pair(&pair);
	receive_one(&pair);
	wr = test_wr(&pair, RBX_OP_WRITE, &sge, 0, TARGET_BYTES, 8);
	wr.flags |= RBX_WR_IMMEDIATE;
	test_post(&pair, &wr);
	assert_int_equal(test_wait(&pair, pair.client_cq).status, -EACCES);
	/* A NIC may have taken the receive before it looked at the key. */
	status = test_wait(&pair, pair.server_cq).status;
	assert_true(status == -ECANCELED ||
		    (status == -EACCES && !strcmp(test_fabric, "verbs")));
	test_pair_close(&pair);
}

/* Messages of all kinds, more than there are receives at any time. */
static void messages_of_all_kinds_keep_their_order(void **state)
{
	struct test_pair pair;
	struct rbx_sge sge;
	struct rbx_wc wc;
	uint32_t i;

	(void)state;
	open_pair(&pair);
	for (i = 0; i < 20; i++) {
		struct rbx_wr wr = test_wr(&pair, i % 2 ? RBX_OP_SEND :
							  RBX_OP_WRITE,
					   &sge, 0, 0, 8);

		wr.flags |= RBX_WR_IMMEDIATE;
		wr.immediate = i;
		test_post(&pair, &wr);
	}
	for (i = 0; i < 20; i++) {
		receive_one(&pair);
		wc = test_wait(&pair, pair.server_cq);
		assert_int_equal(wc.immediate, i);
		assert_int_equal(wc.opcode, i % 2 ? RBX_OP_RECV :
						    RBX_OP_RECV_WRITE);
		assert_int_equal(test_wait(&pair, pair.client_cq).status, 0);
	}
	test_pair_close(&pair);
}

/* ---- What is refused ---------------------------------------------------------*/

static void operation_that_makes_no_sense_is_einval(void **state)
{
	static const struct {
		uint8_t opcode, flags;
	} bad[] = {
		{ RBX_OP_READ, RBX_WR_IMMEDIATE },
		{ RBX_OP_READ, RBX_WR_INVALIDATE },
		{ RBX_OP_WRITE, RBX_WR_INVALIDATE },
		{ RBX_OP_SEND, RBX_WR_IMMEDIATE | RBX_WR_INVALIDATE },
		{ RBX_OP_FETCH_ADD, RBX_WR_IMMEDIATE },
		{ RBX_OP_FETCH_ADD, RBX_WR_INVALIDATE },
		{ RBX_OP_OPEN_WINDOW, 0 }, /* with a list */
		{ RBX_OP_RECV, 0 },
		{ RBX_OP_RECV_WRITE, 0 },
	};
	struct test_pair pair;
	struct rbx_wr wr, *at;
	struct rbx_sge sge;
	size_t i;

	(void)state;
	open_pair(&pair);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		wr = test_wr(&pair, bad[i].opcode, &sge, 0, 0, 8);
		wr.flags |= bad[i].flags;
		assert_int_equal(pair.ops->post_send(pair.client, &wr, &at),
				 -EINVAL);
	}
	assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 0, 8), 0);
	test_pair_close(&pair);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(receive_list_is_filled_in_order),
		cmocka_unit_test(message_longer_than_the_list_fails),
		cmocka_unit_test(receive_that_is_not_possible_is_refused),
		cmocka_unit_test(send_with_immediate_brings_both),
		cmocka_unit_test(write_with_immediate_completes_a_receive),
		cmocka_unit_test(write_with_immediate_waits_for_a_receive),
		cmocka_unit_test(write_with_immediate_needs_the_right),
		cmocka_unit_test(messages_of_all_kinds_keep_their_order),
		cmocka_unit_test(operation_that_makes_no_sense_is_einval),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
