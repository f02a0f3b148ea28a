/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * failure_test.c - how work requests fail: keys, bounds and rights,
 * receivers that are not ready, and what is flushed in which order.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "endpoint.h"

#define PAGE 4096u

/* Three requests, the middle one bad: done, failed, flushed, in this order. */
static void expect_middle_fails(struct test_pair *pair, struct rbx_wr *middle,
				int status)
{
	struct rbx_sge sges[2];
	struct rbx_wr first, last;
	struct rbx_wc wc;

	/* The server's receive tells it of the end of the connection. */
	test_post_recv(pair, pair->server, 7, pair->target_memory, PAGE,
		       pair->target_mr->lkey);
	first = test_wr(pair, RBX_OP_WRITE, &sges[0], 0, 0, 64);
	last = test_wr(pair, RBX_OP_WRITE, &sges[1], 0, 0, 64);
	first.wr_id = 100;
	first.flags = 0;
	first.next = middle;
	middle->wr_id = 101;
	middle->next = &last;
	last.wr_id = 102;
	last.flags = 0; /* flushed visibly all the same */
	test_post(pair, &first);
	wc = test_wait(pair, pair->client_cq);
	assert_int_equal(wc.wr_id, 101);
	assert_int_equal(wc.status, status);
	wc = test_wait(pair, pair->client_cq);
	assert_int_equal(wc.wr_id, 102);
	assert_int_equal(wc.status, -ECANCELED);
	assert_ptr_equal(wc.qp, pair->client);
	/* Later posts are taken and flushed. */
	last.next = NULL;
	last.wr_id = 103;
	test_post(pair, &last);
	wc = test_wait(pair, pair->client_cq);
	assert_int_equal(wc.wr_id, 103);
	assert_int_equal(wc.status, -ECANCELED);
	wc = test_wait(pair, pair->server_cq);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.status, -ECANCELED);
	test_nothing(pair, pair->client_cq);
}

/* Makes sure that a mapping, where there is one, is in use. */
static void warm_up(struct test_pair *pair)
{
	int i;

	for (i = 0; i < 3; i++)
		assert_int_equal(test_do(pair, RBX_OP_WRITE, 0, 0, 64), 0);
}

static void wrong_key_refused(void **state)
{
	struct test_pair pair;
	struct rbx_sge sge;
	struct rbx_wr wr;
	uint32_t i;

	(void)state;
	for (i = 0; i < 4; i++) {
		static const uint32_t flips[] = { 1, 0x10000, 0x80000000, 0xff };

		test_pair_open(&pair, NULL);
		warm_up(&pair);
		wr = test_wr(&pair, i % 2 ? RBX_OP_READ : RBX_OP_WRITE, &sge, 0,
			     0, 64);
		wr.rkey ^= flips[i];
		expect_middle_fails(&pair, &wr, -EACCES);
		test_pair_close(&pair);
	}
}

static void out_of_bounds_refused(void **state)
{
	static const struct {
		int64_t offset;
		uint32_t length_bytes;
	} ranges[] = {
		{ TARGET_BYTES - 63, 64 },
		{ -1, 64 },
		{ TARGET_BYTES, 1 },
		{ INT64_MIN, 64 },
		{ 0, TARGET_BYTES },
	};
	struct test_pair pair;
	struct rbx_sge sge;
	struct rbx_wr wr;
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
		test_pair_open(&pair, NULL);
		warm_up(&pair);
		wr = test_wr(&pair, i % 2 ? RBX_OP_READ : RBX_OP_WRITE, &sge, 0,
			     0, ranges[i].length_bytes);
		wr.remote_addr += (uint64_t)ranges[i].offset;
		wr.remote_addr += ranges[i].length_bytes == TARGET_BYTES;
		expect_middle_fails(&pair, &wr, -EACCES);
		test_pair_close(&pair);
	}
}

static void last_bytes_in_bounds_allowed(void **state)
{
	struct test_pair pair;

	(void)state;
	test_pair_open(&pair, NULL);
	assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, TARGET_BYTES - 64, 64),
			 0);
	assert_int_equal(test_do(&pair, RBX_OP_READ, 0, TARGET_BYTES - 64, 64),
			 0);
	assert_int_equal(test_do(&pair, RBX_OP_READ, 0, 0, TARGET_BYTES), 0);
	test_pair_close(&pair);
}

static void missing_right_refused(void **state)
{
	static const uint32_t rights[] = { RBX_REMOTE_READ,
					   RBX_REMOTE_WRITE | RBX_LOCAL_WRITE };
	static const uint8_t allowed[] = { RBX_OP_READ, RBX_OP_WRITE };
	static const uint8_t forbidden[] = { RBX_OP_WRITE, RBX_OP_READ };
	struct rbx_mr_init init;
	struct test_pair pair;
	struct rbx_sge sge;
	struct rbx_mr *mr;
	struct rbx_wr wr;
	int i, j;

	(void)state;
	for (i = 0; i < 2; i++) {
		test_pair_open(&pair, NULL);
		init = (struct rbx_mr_init){
			.addr = pair.target_memory,
			.length_bytes = TARGET_BYTES,
			.rights = rights[i],
			.memory_fd = pair.target_fd,
		};
		assert_int_equal(pair.ops->register_memory(pair.server_device,
							   &init, 1, &mr, NULL),
				 0);
		for (j = 0; j < 3; j++) {
			wr = test_wr(&pair, allowed[i], &sge, 0, 0, 64);
			wr.rkey = mr->rkey;
			test_post(&pair, &wr);
			assert_int_equal(test_wait(&pair, pair.client_cq).status,
					 0);
		}
		wr = test_wr(&pair, forbidden[i], &sge, 0, 0, 64);
		wr.rkey = mr->rkey;
		expect_middle_fails(&pair, &wr, -EACCES);
		pair.ops->deregister_memory(pair.server_device, &mr, 1);
		test_pair_close(&pair);
	}
}

static void revoked_key_refused_and_memory_untouched(void **state)
{
	struct test_pair pair;
	struct rbx_sge sge;
	struct rbx_wr wr;

	(void)state;
	test_pair_open(&pair, NULL);
	memset(pair.local, 0x77, PAGE);
	warm_up(&pair);
	wr = test_wr(&pair, RBX_OP_WRITE, &sge, 0, 0, PAGE);
	pair.ops->deregister_memory(pair.server_device, &pair.target_mr, 1);
	memset(pair.target, 0, PAGE);
	test_post(&pair, &wr);
	assert_int_equal(test_wait(&pair, pair.client_cq).status, -EACCES);
	assert_int_equal(pair.target[0], 0);
	pair.target_mr = NULL;
	test_pair_close(&pair);
}

/* A key of an earlier registration of the same memory stays dead. */
static void stale_key_after_reuse_refused(void **state)
{
	struct test_pair pair;
	struct rbx_sge sge;
	struct rbx_wr wr;
	struct rbx_mr_init init;
	uint32_t stale;
	/* The soft device uses all of its 65,535 slots before one again. */
	int i, count = strncmp(test_fabric, "soft", 4) ? 100 : 70000;

	(void)state;
	test_pair_open(&pair, NULL);
	init = (struct rbx_mr_init){
		.addr = pair.target_memory,
		.length_bytes = TARGET_BYTES,
		.rights = RBX_REMOTE_WRITE | RBX_LOCAL_WRITE,
		.memory_fd = -1,
	};
	stale = pair.target_mr->rkey;
	for (i = 0; i < count; i++) {
		pair.ops->deregister_memory(pair.server_device,
					    &pair.target_mr, 1);
		assert_int_equal(pair.ops->register_memory(
			pair.server_device, &init, 1, &pair.target_mr, NULL), 0);
		assert_int_not_equal(pair.target_mr->rkey, stale);
	}
	wr = test_wr(&pair, RBX_OP_WRITE, &sge, 0, 0, 64);
	wr.rkey = stale;
	expect_middle_fails(&pair, &wr, -EACCES);
	test_pair_close(&pair);
}

struct revoker {
	struct test_pair *pair;
	atomic_bool revoked;
};

static void *revoker_run(void *argument)
{
	struct revoker *revoker = argument;
	struct test_pair *pair = revoker->pair;

	usleep(20000);
	pair->ops->deregister_memory(pair->server_device, &pair->target_mr, 1);
	atomic_store(&revoker->revoked, true);
	return NULL;
}

/*
 * The key is taken back in the middle of traffic: what completes without error
 * was done before, the first failure is -EACCES or, with the end of the
 * connection in the middle of a response, a lost peer; then all is flushed.
 */
static void revoked_under_traffic_fails_cleanly(void **state)
{
	enum { BYTES = 64 << 10 };
	struct rbx_sge sges[16];
	struct rbx_wr wrs[16], *bad;
	struct test_pair pair;
	struct revoker revoker = { .pair = &pair };
	pthread_t thread;
	bool revoked_before;
	struct rbx_wc wc;
	int i, round;

	(void)state;
	for (round = 0; round < 6; round++) {
		atomic_store(&revoker.revoked, false);
		test_pair_open(&pair, NULL);
		for (i = 0; i < 16; i++) {
			wrs[i] = test_wr(&pair, round % 2 ? RBX_OP_READ :
					 RBX_OP_WRITE, &sges[i], i * BYTES,
					 i * BYTES, BYTES);
			wrs[i].next = NULL;
			wrs[i].wr_id = (uint64_t)i;
		}
		assert_int_equal(pthread_create(&thread, NULL, revoker_run,
						&revoker), 0);
		for (i = 0;; i = (i + 1) % 16) {
			revoked_before = atomic_load(&revoker.revoked);
			assert_int_equal(pair.ops->post_send(
				pair.client, &wrs[i], &bad), 0);
			wc = test_wait(&pair, pair.client_cq);
			if (wc.status)
				break;
			/* Posted after the end of the key: must not be good. */
			assert_false(revoked_before);
		}
		/* Soft-RoCE stops a response halfway, and no more comes. */
		assert_true(wc.status == -EACCES ||
			    wc.status == -EHOSTUNREACH ||
			    (wc.status == -ETIMEDOUT &&
			     !strcmp(test_fabric, "verbs")));
		pthread_join(thread, NULL);
		pair.target_mr = NULL;
		test_pair_close(&pair);
	}
}

static void local_key_out_of_bounds_is_efault(void **state)
{
	struct test_pair pair;
	struct rbx_sge sge;
	struct rbx_wr wr;

	(void)state;
	test_pair_open(&pair, NULL);
	warm_up(&pair);
	wr = test_wr(&pair, RBX_OP_READ, &sge, LOCAL_BYTES - 8, 0, 64);
	test_post(&pair, &wr);
	assert_int_equal(test_wait(&pair, pair.client_cq).status, -EFAULT);
	test_post(&pair, &wr);
	assert_int_equal(test_wait(&pair, pair.client_cq).status, -ECANCELED);
	test_pair_close(&pair);
}

static void malformed_request_is_einval(void **state)
{
	struct test_pair pair;
	struct rbx_sge sges[64];
	struct rbx_wr wr, *bad = NULL;
	int i;

	(void)state;
	test_pair_open(&pair, NULL);
	for (i = 0; i < 64; i++)
		test_wr(&pair, RBX_OP_WRITE, &sges[i], 0, 0, 8);
	wr = test_wr(&pair, RBX_OP_WRITE, &sges[0], 0, 0, 8);
	wr.sge_count = 64;
	assert_int_equal(pair.ops->post_send(pair.client, &wr, &bad), -EINVAL);
	assert_ptr_equal(bad, &wr);
	wr.sge_count = 1;
	wr.opcode = RBX_OP_RECV;
	assert_int_equal(pair.ops->post_send(pair.client, &wr, &bad), -EINVAL);
	assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 0, 8), 0);
	test_pair_close(&pair);
}

static void message_longer_than_receive_fails_both(void **state)
{
	struct test_pair pair;
	struct rbx_sge sge;
	struct rbx_wr wr;
	struct rbx_wc wc;

	(void)state;
	test_pair_open(&pair, NULL);
	test_post_recv(&pair, pair.server, 1, pair.target_memory, 100,
		       pair.target_mr->lkey);
	test_post_recv(&pair, pair.server, 2, pair.target_memory, 100,
		       pair.target_mr->lkey);
	wr = test_wr(&pair, RBX_OP_SEND, &sge, 0, 0, 101);
	test_post(&pair, &wr);
	wc = test_wait(&pair, pair.server_cq);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.status, -EMSGSIZE);
	wc = test_wait(&pair, pair.server_cq);
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(wc.status, -ECANCELED);
	wc = test_wait(&pair, pair.client_cq);
	assert_int_equal(wc.status, -EREMOTEIO);
	test_pair_close(&pair);
}

static void receiver_never_ready_is_enobufs(void **state)
{
	struct test_pair pair;
	struct rbx_sge sges[2];
	struct rbx_wr wrs[2];

	(void)state;
	test_pair_open(&pair, NULL);
	wrs[0] = test_wr(&pair, RBX_OP_SEND, &sges[0], 0, 0, 8);
	wrs[1] = test_wr(&pair, RBX_OP_WRITE, &sges[1], 0, 0, 8);
	wrs[0].next = &wrs[1];
	test_post(&pair, wrs);
	assert_int_equal(test_wait(&pair, pair.client_cq).status, -ENOBUFS);
	assert_int_equal(test_wait(&pair, pair.client_cq).status, -ECANCELED);
	test_pair_close(&pair);
}

/*
 * disconnect() flushes both ends, each completion once and each queue in order;
 * between sends and receives there is none.
 */
static void disconnect_flushes_all_in_order(void **state)
{
	enum { COUNT = 40, RECEIVES = 10, FIRST_RECEIVE = 100 };
	struct rbx_sge sges[COUNT];
	struct rbx_wr wrs[COUNT];
	struct test_pair pair;
	struct rbx_wc wc;
	uint32_t i, next_send = 0, next_receive = FIRST_RECEIVE;

	(void)state;
	test_pair_open(&pair, NULL);
	for (i = 0; i < RECEIVES; i++)
		test_post_recv(&pair, pair.server, FIRST_RECEIVE + i,
			       pair.target_memory, PAGE, pair.target_mr->lkey);
	for (i = 0; i < COUNT; i++) {
		wrs[i] = test_wr(&pair, i ? RBX_OP_WRITE : RBX_OP_SEND,
				 &sges[i], 0, 0, 0);
		wrs[i].sge_count = 0;
		wrs[i].wr_id = i;
		wrs[i].flags = 0;
		wrs[i].next = i + 1 < COUNT ? &wrs[i + 1] : NULL;
	}
	/*
	 * Posted on the server's end: the first, a SEND, meets no receive at
	 * the client, so that all of them are there to be flushed.
	 */
	assert_int_equal(pair.ops->post_send(pair.server, wrs, NULL), 0);
	pair.ops->disconnect(pair.server);
	for (i = 0; i < COUNT + RECEIVES; i++) {
		wc = test_wait(&pair, pair.server_cq);
		assert_int_equal(wc.status, -ECANCELED);
		assert_int_equal(wc.wr_id, wc.wr_id < FIRST_RECEIVE ?
				 next_send++ : next_receive++);
	}
	assert_int_equal(next_send, COUNT);
	test_nothing(&pair, pair.server_cq);
	pair.ops->disconnect(pair.server);
	test_nothing(&pair, pair.server_cq);
	wrs[1] = test_wr(&pair, RBX_OP_WRITE, &sges[1], 0, 0, 8);
	/* The client learns of it by the failure of its next request. */
	do {
		test_post(&pair, &wrs[1]);
		wc = test_wait(&pair, pair.client_cq);
	} while (!wc.status);
	assert_true(wc.status == -EHOSTUNREACH || wc.status == -ECANCELED);
	test_pair_close(&pair);
}

static void peer_gone_flushes_posted_receive(void **state)
{
	struct test_pair pair;
	struct rbx_wc wc;

	(void)state;
	test_pair_open(&pair, NULL);
	test_post_recv(&pair, pair.client, 3, pair.local, PAGE,
		       pair.local_mr->lkey);
	pair.ops->destroy_qp(pair.server);
	pair.server = NULL;
	wc = test_wait(&pair, pair.client_cq);
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(wc.status, -ECANCELED);
	test_pair_close(&pair);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_key_refused),
		cmocka_unit_test(out_of_bounds_refused),
		cmocka_unit_test(last_bytes_in_bounds_allowed),
		cmocka_unit_test(missing_right_refused),
		cmocka_unit_test(revoked_key_refused_and_memory_untouched),
		cmocka_unit_test(stale_key_after_reuse_refused),
		cmocka_unit_test(revoked_under_traffic_fails_cleanly),
		cmocka_unit_test(local_key_out_of_bounds_is_efault),
		cmocka_unit_test(malformed_request_is_einval),
		cmocka_unit_test(message_longer_than_receive_fails_both),
		cmocka_unit_test(receiver_never_ready_is_enobufs),
		cmocka_unit_test(disconnect_flushes_all_in_order),
		cmocka_unit_test(peer_gone_flushes_posted_receive),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
