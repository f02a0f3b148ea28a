/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nic_faults_test.c - what goes wrong at each site, and what never does: the order
 * of completions, the bytes of what has completed, the memory of who has gone.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/nic/device.h"
#include "sim/sites.h"
#include "tests/fabric/endpoint.h"
#include "tests/sim/nic_world.h"

#define COUNT 40u
#define ALWAYS 1000000u

static struct test_pair pair;
static struct rbx_sge sges[COUNT];
static struct rbx_wr wrs[COUNT];

static void begin(void)
{
	test_pair_open(&pair, NULL);
}

/* COUNT requests of so many bytes, one after the other in both memories. */
static void prepare(uint8_t opcode, uint32_t bytes)
{
	for (uint32_t i = 0; i < COUNT; i++) {
		wrs[i] = test_wr(&pair, opcode, &sges[i], i * bytes, i * bytes,
				 bytes);
		wrs[i].wr_id = i;
		wrs[i].next = i + 1 < COUNT ? &wrs[i + 1] : NULL;
	}
}

static void late_completions_keep_order_and_count(void **state)
{
	(void)state;
	begin();
	rbx_sim_site_force(RBX_SIM_SITE_late_completion, 300000);
	prepare(RBX_OP_WRITE, 64);
	test_post(&pair, wrs);
	for (uint32_t i = 0; i < COUNT; i++) {
		struct rbx_wc wc = test_wait(&pair, pair.client_cq);

		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.status, 0);
	}
	assert_true(rbx_sim_site_fired(RBX_SIM_SITE_late_completion) > 0);
	test_nothing(&pair, pair.client_cq);
	test_pair_close(&pair);
}

/* Whether the last byte of some request is there and the first is not. */
static bool is_out_of_order(uint32_t bytes)
{
	for (uint32_t i = 0; i < COUNT; i++) {
		const uint8_t *from = pair.local + i * bytes;
		const uint8_t *to = pair.target + i * bytes;

		if (to[0] != from[0] && to[bytes - 1] == from[bytes - 1])
			return true;
	}
	return false;
}

/* What a reader must not rely on, and what it may. */
static void late_placement_mixes_bytes_and_ends_before_completion(void **state)
{
	enum { BYTES = 4096 };
	uint32_t out_of_order = 0;

	(void)state;
	begin();
	rbx_sim_site_force(RBX_SIM_SITE_late_placement, ALWAYS);
	nic_world_frozen = true;
	test_fill(pair.local, LOCAL_BYTES, 9);
	for (uint32_t i = 0; i < COUNT * BYTES; i++)
		pair.target[i] = (uint8_t)~pair.local[i];
	prepare(RBX_OP_WRITE, BYTES);
	test_post(&pair, wrs);
	for (uint32_t i = 0; i < COUNT; i++) {
		struct rbx_wc wc;

		while (!pair.ops->poll(pair.client_cq, &wc, 1)) {
			assert_true(rbx_sim_step());
			out_of_order += is_out_of_order(BYTES);
		}
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.status, 0);
		assert_memory_equal(pair.local + i * BYTES,
				    pair.target + i * BYTES, BYTES);
	}
	assert_true(out_of_order > 0);
	test_pair_close(&pair);
}

/* A source buffer is read when the DMA reads it, and not at the post. */
static void source_is_read_by_the_dma(void **state)
{
	(void)state;
	begin();
	nic_world_frozen = true;
	memset(pair.local, 0x11, 64);
	prepare(RBX_OP_WRITE, 64);
	wrs[0].next = NULL;
	test_post(&pair, wrs);
	memset(pair.local, 0x22, 64);
	nic_world_frozen = false;
	assert_int_equal(test_wait(&pair, pair.client_cq).status, 0);
	assert_int_equal(pair.target[0], 0x22);
	test_pair_close(&pair);
}

static void read_buffer_holds_junk_until_completion(void **state)
{
	(void)state;
	begin();
	rbx_sim_site_force(RBX_SIM_SITE_scribble, ALWAYS);
	nic_world_frozen = true;
	memset(pair.local, 0x11, 64);
	memset(pair.target, 0x33, 64);
	prepare(RBX_OP_READ, 64);
	wrs[0].next = NULL;
	test_post(&pair, wrs);
	assert_int_equal(pair.local[0], 0xdb);
	nic_world_frozen = false;
	assert_int_equal(test_wait(&pair, pair.client_cq).status, 0);
	assert_int_equal(pair.local[63], 0x33);
	test_pair_close(&pair);
}

/* The first fails as its site says; all else is flushed, once and in order, and
 * says nothing but who it is. */
static void expect_first_fails(enum rbx_sim_site site, uint8_t opcode,
			       int status)
{
	struct rbx_wc wc;

	begin();
	test_post_recv(&pair, pair.server, 1000, pair.target_memory, 4096,
		       pair.target_mr->lkey);
	test_post_recv(&pair, pair.client, 1001, pair.local, 4096,
		       pair.local_mr->lkey);
	rbx_sim_site_force(site, ALWAYS);
	prepare(opcode, 64);
	test_post(&pair, wrs);
	for (uint32_t i = 0; i < COUNT; i++) {
		wc = test_wait(&pair, pair.client_cq);
		if (wc.wr_id == 1001) { /* receives have an order of their own */
			assert_int_equal(wc.status, -ECANCELED);
			i--;
			continue;
		}
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.status, i ? -ECANCELED : status);
		assert_int_not_equal(wc.opcode, opcode);
		assert_int_not_equal(wc.length_bytes, 64);
	}
	/* The other end hears of it. */
	wc = test_wait(&pair, pair.server_cq);
	assert_int_equal(wc.wr_id, 1000);
	assert_int_equal(wc.status, -ECANCELED);
	test_pair_close(&pair);
}

static void each_site_fails_as_it_says(void **state)
{
	(void)state;
	expect_first_fails(RBX_SIM_SITE_qp_error, RBX_OP_WRITE, -ECANCELED);
	expect_first_fails(RBX_SIM_SITE_retry_exceeded, RBX_OP_READ,
			   -ETIMEDOUT);
	expect_first_fails(RBX_SIM_SITE_stale_key, RBX_OP_READ, -EACCES);
	expect_first_fails(RBX_SIM_SITE_stale_key, RBX_OP_WRITE, -EACCES);
	expect_first_fails(RBX_SIM_SITE_receiver_not_ready, RBX_OP_SEND,
			   -ENOBUFS);
}

static void full_post_takes_what_came_before(void **state)
{
	struct rbx_wr *bad = NULL;
	uint32_t taken;

	(void)state;
	begin();
	rbx_sim_site_force(RBX_SIM_SITE_post_full, 100000);
	prepare(RBX_OP_WRITE, 64);
	assert_int_equal(pair.ops->post_send(pair.client, wrs, &bad), -ENOMEM);
	taken = (uint32_t)(bad - wrs);
	assert_true(taken < COUNT);
	for (uint32_t i = 0; i < taken; i++)
		assert_int_equal(test_wait(&pair, pair.client_cq).wr_id, i);
	test_nothing(&pair, pair.client_cq);
	test_pair_close(&pair);
}

static void connect_fails(enum rbx_sim_site site, int err)
{
	struct rbx_qp_init init;
	struct rbx_connect_init connect = { .timeout_ms = 10 };
	struct rbx_conn_request *request;
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_qp *qp;

	begin();
	connect.address = pair.listener->address;
	init = (struct rbx_qp_init){
		.send_cq = pair.client_cq,
		.recv_cq = pair.client_cq,
		.send_depth_count = 4,
		.max_sge = 1,
	};
	rbx_sim_site_force(site, ALWAYS);
	assert_int_equal(pair.ops->connect(pair.client_device, &init, &connect,
					   &qp, error),
			 err);
	assert_true(strlen(error) > 0);
	/* Whoever asks the listener late finds nobody. */
	assert_int_equal(pair.ops->get_request(pair.listener, &request),
			 -EAGAIN);
	test_pair_close(&pair);
}

static void operation_that_is_not_modelled_is_refused(void **state)
{
	static const struct {
		uint8_t opcode, flags;
	} missing[] = {
		{ RBX_OP_FETCH_ADD, 0 },
		{ RBX_OP_COMPARE_SWAP, 0 },
		{ RBX_OP_SEND, RBX_WR_IMMEDIATE },
		{ RBX_OP_WRITE, RBX_WR_IMMEDIATE },
		{ RBX_OP_SEND, RBX_WR_INVALIDATE },
	};
	struct rbx_recv_wr recv = { .sges = sges, .sge_count = 2 }, *bad_recv;
	struct rbx_wr *bad;

	(void)state;
	begin();
	assert_false(pair.client_device->caps.has_immediate ||
		     pair.client_device->caps.has_invalidate ||
		     pair.client_device->caps.has_atomics);
	for (uint32_t i = 0; i < sizeof(missing) / sizeof(*missing); i++) {
		prepare(missing[i].opcode, 8);
		wrs[0].flags |= missing[i].flags;
		wrs[0].next = NULL;
		assert_int_equal(pair.ops->post_send(pair.client, wrs, &bad),
				 -EOPNOTSUPP);
		assert_ptr_equal(bad, wrs);
	}
	assert_int_equal(pair.ops->post_recv(pair.client, &recv, &bad_recv),
			 -EOPNOTSUPP);
	test_pair_close(&pair);
}

static void connect_unanswered_times_out(void **state)
{
	(void)state;
	connect_fails(RBX_SIM_SITE_connect_timeout, -ETIMEDOUT);
	/* Nobody accepts: the same. */
	connect_fails(RBX_SIM_SITE_scribble, -ETIMEDOUT);
}

/* A node loses its power in the midst of traffic in both directions. */
static void stopped_node_falls_silent(void **state)
{
	struct rbx_wr back = { .opcode = RBX_OP_SEND };
	struct rbx_wc wc;

	(void)state;
	begin();
	prepare(RBX_OP_WRITE, 4096);
	test_post(&pair, wrs);
	assert_int_equal(pair.ops->post_send(pair.server, &back, NULL), 0);
	nic_world_pass(5000);
	rbx_nic_node_stop(2);
	do
		wc = test_wait(&pair, pair.client_cq);
	while (wc.status == 0);
	assert_int_equal(wc.status, -ETIMEDOUT);
	for (uint64_t id = wc.wr_id + 1; id < COUNT; id++) {
		wc = test_wait(&pair, pair.client_cq);
		assert_int_equal(wc.wr_id, id);
		assert_int_equal(wc.status, -ECANCELED);
	}
	pair.ops->destroy_qp(pair.client);
	pair.ops->destroy_cq(pair.client_cq);
	pair.ops->deregister_memory(pair.client_device, &pair.local_mr, 1);
	pair.ops->close(pair.client_device);
	nic_world_begin(NULL); /* where the stopped device is freed */
	munmap(pair.target, TARGET_BYTES);
	munmap(pair.target_memory, TARGET_BYTES);
	munmap(pair.local, LOCAL_BYTES);
}

/* A sender gives up, and its packet arrives all the same. */
static void stray_write_lands_after_its_flush(void **state)
{
	uint32_t landed = 0;

	(void)state;
	for (uint32_t round = 0; round < 20; round++) {
		begin();
		memset(pair.local, 0x44, 64);
		memset(pair.target, 0, 64);
		rbx_sim_site_force(RBX_SIM_SITE_stray_write, ALWAYS);
		prepare(RBX_OP_WRITE, 64);
		wrs[0].next = NULL;
		nic_world_frozen = true;
		test_post(&pair, wrs);
		nic_world_pass(2000); /* it is on the link */
		/* Its own end breaks, and cannot tell the other one. */
		rbx_nic_node_cut(1, true);
		pair.ops->disconnect(pair.client);
		nic_world_frozen = false;
		assert_int_equal(test_wait(&pair, pair.client_cq).status,
				 -ECANCELED);
		assert_int_equal(pair.target[0], 0);
		nic_world_pass(1000000);
		landed += pair.target[0] == 0x44;
		test_pair_close(&pair);
	}
	assert_true(landed > 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_completions_keep_order_and_count),
		cmocka_unit_test(
			late_placement_mixes_bytes_and_ends_before_completion),
		cmocka_unit_test(source_is_read_by_the_dma),
		cmocka_unit_test(read_buffer_holds_junk_until_completion),
		cmocka_unit_test(each_site_fails_as_it_says),
		cmocka_unit_test(full_post_takes_what_came_before),
		cmocka_unit_test(operation_that_is_not_modelled_is_refused),
		cmocka_unit_test(connect_unanswered_times_out),
		cmocka_unit_test(stopped_node_falls_silent),
		cmocka_unit_test(stray_write_lands_after_its_flush),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
