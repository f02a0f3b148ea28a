/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verbs_device_test.c - queue pairs of the program's own on a device: what they
 * may reach, how many there are, and how they end.
 *
 * Needs a device whose address is RBX_TEST_LISTEN ("10.9.0.1:0"), and
 * RBX_TEST_FABRIC=verbs. Else all tests are skipped.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/limits.h"
#include "include/rdmabox/verbs.h"
#include "tests/lib/tenant.h"

#define BYTES 4096u

static uint8_t memory[BYTES];

/* A tenant and what it needs for plain verbs. */
struct plain {
	struct tenant tenant;
	struct rbx_remote_key key;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct rbx_verbs_link *link;
};

static int link_open(struct plain *plain, struct rbx_verbs_link **link)
{
	struct ibv_qp_init_attr init = {
		.send_cq = plain->cq,
		.recv_cq = plain->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
	};

	return rbx_verbs_link_open(plain->tenant.peer, &init, link);
}

static void plain_open(struct plain *plain)
{
	struct rbx_verbs verbs = { .size_bytes = sizeof(verbs) };

	tenant_open(&plain->tenant, "peer_timeout_ms=10000");
	assert_int_equal(rbx_peer_verbs(plain->tenant.peer, &verbs), 0);
	assert_true(verbs.port > 0);
	assert_ptr_equal(verbs.pd->context, verbs.context);
	rbx_remote_key(plain->tenant.remote, &plain->key);
	plain->cq = ibv_create_cq(verbs.context, 64, NULL, NULL, 0);
	plain->mr = ibv_reg_mr(verbs.pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(plain->cq);
	assert_non_null(plain->mr);
	if (link_open(plain, &plain->link))
		fail_msg("%s", rbx_last_error());
}

static void plain_close(struct plain *plain)
{
	if (plain->link)
		rbx_verbs_link_close(plain->link);
	ibv_destroy_cq(plain->cq);
	ibv_dereg_mr(plain->mr);
	tenant_close(&plain->tenant);
}

static void post(struct plain *plain, enum ibv_wr_opcode opcode,
		 uint64_t address, uint32_t rkey)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)memory,
		.length = BYTES,
		.lkey = plain->mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma.remote_addr = address,
		.wr.rdma.rkey = rkey,
	};

	assert_int_equal(ibv_post_send(rbx_verbs_link_qp(plain->link), &wr,
				       &bad),
			 0);
}

static enum ibv_wc_status wait_status(struct plain *plain)
{
	struct ibv_wc wc;
	int waited_ms;

	for (waited_ms = 0; waited_ms < TENANT_WAIT_MS; waited_ms++) {
		if (ibv_poll_cq(plain->cq, 1, &wc) == 1)
			return wc.status;
		usleep(1000);
	}
	fail_msg("no completion");
	return 0;
}

static enum ibv_wc_status move(struct plain *plain, enum ibv_wr_opcode opcode,
			       uint64_t address, uint32_t rkey)
{
	post(plain, opcode, address, rkey);
	return wait_status(plain);
}

static void link_reads_what_a_request_has_written(void **state)
{
	uint8_t written[BYTES];
	struct plain plain;

	(void)state;
	plain_open(&plain);
	tenant_fill(written, BYTES, 5);
	assert_int_equal(tenant_transfer(&plain.tenant, RBX_WRITE, written,
					 BYTES, 8192),
			 0);
	assert_int_equal(move(&plain, IBV_WR_RDMA_READ,
			      plain.key.address + 8192, plain.key.rkey),
			 IBV_WC_SUCCESS);
	assert_memory_equal(memory, written, BYTES);
	plain_close(&plain);
}

static void expect_refusal(enum ibv_wc_status status)
{
	/* The server ends the link, which may be here before the refusal is. */
	if (status != IBV_WC_WR_FLUSH_ERR)
		assert_int_equal(status, IBV_WC_REM_ACCESS_ERR);
}

static void link_reads_nothing_beyond_what_is_lent(void **state)
{
	struct plain plain;

	(void)state;
	plain_open(&plain);
	expect_refusal(move(&plain, IBV_WR_RDMA_READ,
			    plain.key.address + TENANT_SLAB_BYTES - BYTES + 1,
			    plain.key.rkey));
	/* It is the end of the link alone: another one goes on. */
	rbx_verbs_link_close(plain.link);
	assert_int_equal(link_open(&plain, &plain.link), 0);
	assert_int_equal(move(&plain, IBV_WR_RDMA_READ, plain.key.address,
			      plain.key.rkey),
			 IBV_WC_SUCCESS);
	assert_int_equal(tenant_transfer(&plain.tenant, RBX_READ, memory, BYTES,
					 0),
			 0);
	plain_close(&plain);
}

static void key_of_returned_memory_is_dead(void **state)
{
	struct rbx_remote_key key;
	struct rbx_remote *remote;
	struct plain plain;

	(void)state;
	plain_open(&plain);
	assert_int_equal(rbx_borrow(plain.tenant.peer, &remote, BYTES), 0);
	rbx_remote_key(remote, &key);
	assert_int_equal(move(&plain, IBV_WR_RDMA_WRITE, key.address, key.rkey),
			 IBV_WC_SUCCESS);
	rbx_return(remote);
	expect_refusal(move(&plain, IBV_WR_RDMA_WRITE, key.address, key.rkey));
	plain_close(&plain);
}

static void message_on_a_link_ends_it(void **state)
{
	struct plain plain;

	(void)state;
	plain_open(&plain);
	post(&plain, IBV_WR_SEND, 0, 0); /* has arrived, or has not */
	(void)wait_status(&plain);
	while (move(&plain, IBV_WR_RDMA_READ, plain.key.address,
		    plain.key.rkey) == IBV_WC_SUCCESS)
		usleep(1000);
	assert_int_equal(tenant_transfer(&plain.tenant, RBX_READ, memory, BYTES,
					 0),
			 0);
	plain_close(&plain);
}

static void links_of_a_client_are_bounded(void **state)
{
	struct rbx_verbs_link *links[RBX_QUEUE_PAIRS_MAX];
	struct rbx_verbs_link *one_more;
	struct plain plain;
	uint32_t i;

	(void)state;
	plain_open(&plain); /* with one, and the peer has one */
	for (i = 2; i < RBX_QUEUE_PAIRS_MAX; i++)
		assert_int_equal(link_open(&plain, &links[i]), 0);
	assert_int_equal(link_open(&plain, &one_more), -EBUSY);
	for (i = 2; i < RBX_QUEUE_PAIRS_MAX; i++)
		rbx_verbs_link_close(links[i]);
	plain_close(&plain);
}

static void queue_pairs_that_cannot_be_are_einval(void **state)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD };
	struct rbx_verbs_link *link;
	struct plain plain;

	(void)state;
	plain_open(&plain);
	init.send_cq = init.recv_cq = plain.cq;
	assert_int_equal(rbx_verbs_link_open(plain.tenant.peer, &init, &link),
			 -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "IBV_QPT_RC"));
	init.qp_type = IBV_QPT_RC;
	init.recv_cq = NULL;
	assert_int_equal(rbx_verbs_link_open(plain.tenant.peer, &init, &link),
			 -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "completion queues"));
	plain_close(&plain);
}

static void link_to_a_server_that_ends_is_flushed(void **state)
{
	struct plain plain;
	int status;

	(void)state;
	plain_open(&plain);
	rbx_server_stop(plain.tenant.server);
	plain.tenant.server = NULL;
	do { /* until it is told; then whatever is posted is flushed */
		status = move(&plain, IBV_WR_RDMA_READ, plain.key.address,
			      plain.key.rkey);
		assert_int_not_equal(status, IBV_WC_SUCCESS);
	} while (status != IBV_WC_WR_FLUSH_ERR);
	plain_close(&plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link_reads_what_a_request_has_written),
		cmocka_unit_test(link_reads_nothing_beyond_what_is_lent),
		cmocka_unit_test(key_of_returned_memory_is_dead),
		cmocka_unit_test(message_on_a_link_ends_it),
		cmocka_unit_test(links_of_a_client_are_bounded),
		cmocka_unit_test(queue_pairs_that_cannot_be_are_einval),
		cmocka_unit_test(link_to_a_server_that_ends_is_flushed),
	};
	const char *fabric = getenv("RBX_TEST_FABRIC");

	if (!fabric || strcmp(fabric, "verbs")) {
		puts("skipped: no RBX_TEST_FABRIC=verbs");
		return 77; /* meson's word for skipped */
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
