/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * invalidate_test.c - SENDs that end a key of the peer: which keys they end, and when.
 */
#include <errno.h>
#include <string.h>

#include "endpoint.h"
#include "tests/fabric/flagged.h"

#define REGION_AT (1u << 20) /* with a key of its own */
#define REGION_BYTES (2u << 20)

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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(invalidate_ends_the_key),
		cmocka_unit_test(invalidate_lets_earlier_reads_end),
		cmocka_unit_test(invalidate_without_the_right_is_refused),
		cmocka_unit_test(invalidate_of_another_domain_is_refused),
		cmocka_unit_test(invalidate_of_no_key_is_refused),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
