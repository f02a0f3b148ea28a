/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * overload_test.c - a soft device that collapses: it says so, moves the same
 * bytes, and counts what is queued to the end.
 */
#include "tests/lib/tenant.h"

#include <errno.h>
#include <string.h>

#include "core/port.h"
#include "fabric/soft/device.h"
#include "lib/context.h"

#define PAGE 4096u
#define BATCH 32u

static uint32_t done_count; /* atomic */

static void count_done(struct rbx_request *request)
{
	assert_int_equal(request->status, 0);
	RBX_FETCH_ADD(&done_count, 1);
}

static void transfer(struct tenant *tenant, enum rbx_op op, uint8_t *bytes)
{
	struct rbx_request requests[BATCH], *list[BATCH];

	done_count = 0;
	for (uint32_t i = 0; i < BATCH; i++) {
		requests[i] = (struct rbx_request){
			.op = (uint8_t)op,
			.flags = RBX_NO_MERGE,
			.length_bytes = PAGE,
			.offset = (uint64_t)i * PAGE,
			.buf = bytes + i * PAGE,
			.complete = count_done,
		};
		list[i] = &requests[i];
	}
	assert_int_equal(rbx_remote_submit(tenant->remote, list, BATCH), 0);
	tenant_wait(tenant->ctx, &done_count, BATCH, false);
}

static void overload_moves_the_same_bytes(void **state)
{
	static uint8_t there[BATCH * PAGE], back[BATCH * PAGE];
	struct rbx_options options;
	struct soft_device *device;
	struct tenant tenant;
	char text[4096];

	(void)state;
	tenant_options(&options);
	if (strncmp(options.fabric, "soft", 4) != 0)
		skip();
	strcpy(options.overload, "4:100");
	tenant_open_with(&tenant, &options);
	rbx_describe(tenant.ctx, text, sizeof(text));
	assert_non_null(strstr(text, "overload=4:100\n"));
	assert_non_null(strstr(text, "overload beyond 4 work requests"));

	tenant_fill(there, sizeof(there), 1);
	transfer(&tenant, RBX_WRITE, there);
	transfer(&tenant, RBX_READ, back);
	assert_memory_equal(there, back, sizeof(there));

	device = soft_device_of(tenant.ctx->device);
	rbx_return(tenant.remote);
	rbx_peer_close(tenant.peer);
	assert_int_equal(atomic_load(&device->overload.queued_count), 0);
	rbx_close(tenant.ctx);
	rbx_server_stop(tenant.server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overload_moves_the_same_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
