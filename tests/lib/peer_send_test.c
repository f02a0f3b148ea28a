/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer_send_test.c - who submits comes back, whatever others submit meanwhile.
 *
 * The device of these tests submits another request in each of its posts, which
 * stands for a thread that is always a moment too late to be the combiner.
 */
#include "tests/lib/tenant.h"

#include <string.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			peer_send_while_others_submit_returns_and_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
