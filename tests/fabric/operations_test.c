/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * operations_test.c - receives that are lists, immediates, and SENDs that end a key.
 *
 * Each test first writes a little, so that a mapping, where there is one, is in use.
 */
#include <errno.h>
#include <string.h>

#include "endpoint.h"

#define PAGE 4096u
#define RECEIVES_AT (4u << 20) /* in the target's memory */
#define REGION_AT (1u << 20) /* with a key of its own */
#define REGION_BYTES (2u << 20)
#define NUMBER 0x01020304u /* reads differently backwards */

static void open_pair(struct test_pair *pair)
{
	int i;

	test_pair_open(pair, NULL);
	for (i = 0; i < 4; i++)
		assert_int_equal(test_do(pair, RBX_OP_WRITE, 0, 0, 64), 0);
	memset(pair->target, 0, TARGET_BYTES);
	test_fill(pair->local, LOCAL_BYTES, 7);
}

static int post_list(struct test_pair *pair, struct rbx_qp *qp,
		     const struct rbx_sge *sges, uint32_t count)
{
	struct rbx_recv_wr wr = { .wr_id = 9, .sges = sges, .sge_count = count };
	struct rbx_recv_wr *bad;

	return pair->ops->post_recv(qp, &wr, &bad);
}

static struct rbx_sge at_target(const struct test_pair *pair, uint64_t offset,
				uint32_t length_bytes)
{
	return (struct rbx_sge){
		.addr = (uintptr_t)pair->target_memory + offset,
		.length_bytes = length_bytes,
		.lkey = pair->target_mr->lkey,
	};
}

static void receive_one(struct test_pair *pair)
{
	const struct rbx_sge sge = at_target(pair, RECEIVES_AT, PAGE);

	assert_int_equal(post_list(pair, pair->server, &sge, 1), 0);
}

/* A work request with flags, posted and done; its status. */
static int do_flagged(struct test_pair *pair, uint8_t opcode, uint8_t flags,
		      uint32_t number, uint32_t length_bytes)
{
	struct rbx_sge sge;
	struct rbx_wr wr = test_wr(pair, opcode, &sge, 0, 0, length_bytes);

	wr.flags |= flags;
	wr.immediate = number;
	test_post(pair, &wr);
	return test_wait(pair, pair->client_cq).status;
}

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
	sges[1] = at_target(&pair, RECEIVES_AT + PAGE, 10);
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

/* ---- Keys that a peer ends ---------------------------------------------------*/

/* False: the device has none, and the test is at its end. */
static bool open_with_invalidate(struct test_pair *pair)
{
	open_pair(pair);
	if (pair->server_device->caps.has_remote_invalidate)
		return true;
	test_pair_close(pair);
	skip();
	return false;
}

static struct rbx_mr *region(struct test_pair *pair, struct rbx_domain *domain,
			     uint32_t more_rights)
{
	struct rbx_mr_init init = {
		.domain = domain,
		.addr = pair->target_memory + REGION_AT,
		.length_bytes = REGION_BYTES,
		.rights = RBX_LOCAL_WRITE | RBX_REMOTE_READ | RBX_REMOTE_WRITE |
			  more_rights,
		.memory_fd = pair->target_fd,
		.memory_fd_offset = REGION_AT,
	};
	struct rbx_mr *mr;

	assert_int_equal(pair->ops->register_memory(pair->server_device, &init,
						    1, &mr, NULL), 0);
	return mr;
}

static int write_to(struct test_pair *pair, struct rbx_qp *qp, uint32_t rkey)
{
	struct rbx_sge sge;
	struct rbx_wr wr = test_wr(pair, RBX_OP_WRITE, &sge, 0, REGION_AT, 64);
	struct rbx_wr *bad;

	wr.rkey = rkey;
	assert_int_equal(pair->ops->post_send(qp, &wr, &bad), 0);
	return test_wait(pair, pair->client_cq).status;
}

static void invalidate_ends_the_key(void **state)
{
	struct test_pair pair;
	struct rbx_mr *mr;
	struct rbx_wc wc;
	int i;

	(void)state;
	if (!open_with_invalidate(&pair))
		return;
	mr = region(&pair, NULL, RBX_REMOTE_INVALIDATE);
	for (i = 0; i < 4; i++)
		assert_int_equal(write_to(&pair, pair.client, mr->rkey), 0);
	receive_one(&pair);
	assert_int_equal(do_flagged(&pair, RBX_OP_SEND, RBX_WR_INVALIDATE,
				    mr->rkey, 100), 0);
	wc = test_wait(&pair, pair.server_cq);
	assert_int_equal(wc.status, 0);
	assert_int_equal(wc.opcode, RBX_OP_RECV);
	assert_int_equal(wc.flags, RBX_WC_INVALIDATED);
	assert_int_equal(wc.invalidated_rkey, mr->rkey);
	assert_int_equal(wc.length_bytes, 100);
	assert_memory_equal(pair.target + RECEIVES_AT, pair.local, 100);
	memset(pair.target, 0, TARGET_BYTES);
	assert_int_equal(write_to(&pair, pair.client, mr->rkey), -EACCES);
	assert_int_equal(pair.target[REGION_AT], 0);
	pair.ops->deregister_memory(pair.server_device, &mr, 1);
	test_pair_close(&pair);
}

/* The read was there first. */
static void invalidate_lets_earlier_reads_end(void **state)
{
	struct rbx_sge sges[2];
	struct rbx_wr wrs[2];
	struct test_pair pair;
	struct rbx_mr *mr;
	int i;

	(void)state;
	if (!open_with_invalidate(&pair))
		return;
	mr = region(&pair, NULL, RBX_REMOTE_INVALIDATE);
	for (i = 0; i < 8; i++) {
		receive_one(&pair);
		wrs[0] = test_wr(&pair, RBX_OP_READ, &sges[0], 0, REGION_AT,
				 REGION_BYTES);
		wrs[1] = test_wr(&pair, RBX_OP_SEND, &sges[1], 0, 0, 8);
		wrs[0].rkey = mr->rkey;
		wrs[0].next = &wrs[1];
		wrs[1].flags |= RBX_WR_INVALIDATE;
		wrs[1].invalidate_rkey = mr->rkey;
		test_post(&pair, wrs);
		assert_int_equal(test_wait(&pair, pair.client_cq).status, 0);
		assert_int_equal(test_wait(&pair, pair.client_cq).status, 0);
		assert_int_equal(test_wait(&pair, pair.server_cq).flags,
				 RBX_WC_INVALIDATED);
		pair.ops->deregister_memory(pair.server_device, &mr, 1);
		mr = region(&pair, NULL, RBX_REMOTE_INVALIDATE);
	}
	pair.ops->deregister_memory(pair.server_device, &mr, 1);
	test_pair_close(&pair);
}

/* The key is refused to the first connection, and a second one may use it yet. */
static void refuse_to_invalidate(struct test_pair *pair, uint32_t rkey,
				 struct rbx_domain *domain, bool is_valid)
{
	struct rbx_qp_init client = {
		.send_cq = pair->client_cq,
		.recv_cq = pair->client_cq,
		.send_depth_count = 4,
		.recv_depth_count = 4,
		.max_sge = 1,
	};
	struct rbx_qp_init server = client;
	struct rbx_qp *ends[2];

	server.send_cq = server.recv_cq = pair->server_cq;
	server.domain = domain;
	server.served = true;
	test_connect(pair, &client, &server, &ends[0], &ends[1]);
	receive_one(pair);
	assert_int_equal(do_flagged(pair, RBX_OP_SEND, RBX_WR_INVALIDATE, rkey,
				    8), -EACCES);
	assert_int_equal(test_wait(pair, pair->server_cq).status, -ECANCELED);
	assert_int_equal(write_to(pair, ends[0], rkey), is_valid ? 0 : -EACCES);
	pair->ops->destroy_qp(ends[0]);
	pair->ops->destroy_qp(ends[1]);
}

static void invalidate_without_the_right_is_refused(void **state)
{
	struct test_pair pair;
	struct rbx_mr *mr;

	(void)state;
	if (!open_with_invalidate(&pair))
		return;
	mr = region(&pair, NULL, RBX_REMOTE_ATOMIC);
	refuse_to_invalidate(&pair, mr->rkey, NULL, true);
	pair.ops->deregister_memory(pair.server_device, &mr, 1);
	test_pair_close(&pair);
}

static void invalidate_of_another_domain_is_refused(void **state)
{
	struct rbx_domain *domain;
	struct test_pair pair;
	struct rbx_mr *mr;

	(void)state;
	if (!open_with_invalidate(&pair))
		return;
	assert_int_equal(pair.ops->create_domain(pair.server_device, &domain,
						 NULL), 0);
	mr = region(&pair, domain, RBX_REMOTE_INVALIDATE);
	refuse_to_invalidate(&pair, mr->rkey, domain, true);
	pair.ops->deregister_memory(pair.server_device, &mr, 1);
	pair.ops->destroy_domain(domain);
	test_pair_close(&pair);
}

static void invalidate_of_no_key_is_refused(void **state)
{
	struct test_pair pair;

	(void)state;
	if (!open_with_invalidate(&pair))
		return;
	refuse_to_invalidate(&pair, 0, NULL, false);
	test_pair_close(&pair);
}

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
		cmocka_unit_test(invalidate_ends_the_key),
		cmocka_unit_test(invalidate_lets_earlier_reads_end),
		cmocka_unit_test(invalidate_without_the_right_is_refused),
		cmocka_unit_test(invalidate_of_another_domain_is_refused),
		cmocka_unit_test(invalidate_of_no_key_is_refused),
		cmocka_unit_test(operation_that_makes_no_sense_is_einval),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
