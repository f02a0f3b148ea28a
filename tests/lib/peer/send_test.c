/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * send_test.c - who submits comes back, whatever others submit meanwhile.
 *
 * The device of these tests submits another request in each of its posts, which
 * stands for a thread that is always a moment too late to be the combiner.
 */
#include "tests/lib/tenant.h"

#include <string.h>
#include <unistd.h>

#include "core/limits.h"
#include "lib/context.h"

#define PAGE 4096u
#define REQUESTS (4 * RBX_COMBINE_MAX)

static struct busy {
	struct rbx_fabric_ops ops; /* the device's, but for post_send */
	const struct rbx_fabric_ops *of_device;
	struct rbx_remote *remote;
	struct rbx_request requests[REQUESTS];
	uint32_t submitted_count;
	uint32_t post_count;
} busy;

static uint8_t page[PAGE];

static void submit_next(void)
{
	struct rbx_request *request = &busy.requests[busy.submitted_count];

	*request = (struct rbx_request){
		.op = RBX_WRITE,
		.buf = page,
		.length_bytes = PAGE,
		.offset = busy.submitted_count++ * PAGE,
	};
	assert_int_equal(rbx_remote_submit(busy.remote, &request, 1), 0);
}

static int post_while_another_submits(struct rbx_qp *qp, struct rbx_wr *first,
				      struct rbx_wr **bad)
{
	busy.post_count++;
	if (busy.submitted_count < REQUESTS)
		submit_next();
	return busy.of_device->post_send(qp, first, bad);
}

static void peer_send_while_others_submit_returns_and_loses_nothing(void **state)
{
	struct tenant tenant;

	(void)state;
	/* The test polls: nobody takes the role over behind its back. */
	tenant_open(&tenant, "pollers=0");
	busy.of_device = tenant.ctx->device->ops;
	busy.ops = *busy.of_device;
	busy.ops.post_send = post_while_another_submits;
	busy.remote = tenant.remote;
	tenant.ctx->device->ops = &busy.ops;

	submit_next();
	assert_int_equal(busy.post_count, RBX_COMBINE_MAX);
	tenant_reap(tenant.ctx, REQUESTS);
	assert_int_equal(busy.post_count, REQUESTS);

	tenant.ctx->device->ops = busy.of_device;
	tenant_close(&tenant);
}

/* ---- A device that takes the first of a chain and no more -------------------*/

static struct half {
	struct rbx_fabric_ops ops;
	const struct rbx_fabric_ops *of_device;
	struct rbx_cq *cq;
	bool has_failed;
} half;

static int post_the_first_alone(struct rbx_qp *qp, struct rbx_wr *first,
				struct rbx_wr **bad)
{
	struct rbx_wr *rest = first->next;
	struct rbx_wc none;
	int err;

	if (half.has_failed || !rest)
		return half.of_device->post_send(qp, first, bad);
	half.has_failed = true;
	first->next = NULL;
	err = half.of_device->post_send(qp, first, bad);
	first->next = rest;
	assert_int_equal(err, 0);
	/* It is done, without a signal, before anybody disconnects. */
	for (int i = 0; i < 50; i++) {
		usleep(1000);
		half.of_device->poll(half.cq, &none, 0);
	}
	*bad = rest;
	return -EIO;
}

static void peer_send_chain_posted_in_part_is_sent_again(void **state)
{
	struct rbx_request requests[8], *list[8];
	struct tenant tenant;

	(void)state;
	/* The test polls: the device's operations are exchanged under nobody. */
	tenant_open(&tenant, "mode=doorbell pollers=0");
	half.cq = tenant.ctx->pollers[0]->cqs[0];
	half.of_device = tenant.ctx->device->ops;
	half.ops = *half.of_device;
	half.ops.post_send = post_the_first_alone;
	tenant.ctx->device->ops = &half.ops;
	for (uint32_t i = 0; i < 8; i++) {
		requests[i] = (struct rbx_request){
			.op = RBX_WRITE,
			.buf = page,
			.length_bytes = PAGE,
			.offset = 2 * i * PAGE,
		};
		list[i] = &requests[i];
	}
	assert_int_equal(rbx_remote_submit(tenant.remote, list, 8), 0);
	tenant_reap(tenant.ctx, 8);
	assert_true(half.has_failed);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(requests[i].status, 0);

	tenant.ctx->device->ops = half.of_device;
	tenant_close(&tenant);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			peer_send_while_others_submit_returns_and_loses_nothing),
		cmocka_unit_test(peer_send_chain_posted_in_part_is_sent_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
