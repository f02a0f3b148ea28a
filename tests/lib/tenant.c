/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tenant.c - see tenant.h. */
#include "tests/lib/tenant.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/limits.h"
#include "core/port.h"
#include "core/random.h"
#include "lib/clock.h"
#include "tests/fill.h"
#include "tests/lib/standstill.h"

static const char *environment(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value ? value : otherwise;
}

void tenant_server_options(struct rbx_server_options *options)
{
	rbx_server_options_defaults(options);
	strcpy(options->listen, environment("RBX_TEST_LISTEN", "127.0.0.1:0"));
	strcpy(options->fabric, environment("RBX_TEST_FABRIC", "soft:tcp"));
	options->slab_bytes = TENANT_SLAB_BYTES;
	options->memory_bytes = TENANT_SLABS * TENANT_SLAB_BYTES;
	options->insecure = 1; /* verbs may not have a loopback address */
}

struct rbx_server *tenant_server(void)
{
	struct rbx_server_options options;
	struct rbx_server *server;

	tenant_server_options(&options);
	if (rbx_server_start(&server, &options))
		fail_msg("%s", rbx_last_error());
	return server;
}

void tenant_options(struct rbx_options *options)
{
	rbx_options_defaults(options);
	strcpy(options->fabric, environment("RBX_TEST_FABRIC", "soft:tcp"));
	options->insecure = 1;
}

struct rbx_context *tenant_context(const char *settings)
{
	struct rbx_options options;
	struct rbx_context *ctx;
	char text[256];
	char *rest = text, *one;

	tenant_options(&options);
	snprintf(text, sizeof(text), "%s", settings);
	while ((one = strsep(&rest, " ")))
		if (*one && rbx_options_set(&options, one))
			fail_msg("%s", rbx_last_error());
	if (rbx_open(&ctx, &options))
		fail_msg("%s", rbx_last_error());
	return ctx;
}

/* tenant->ctx is open. */
static void borrow(struct tenant *tenant, const char *address)
{
	if (rbx_peer_connect(tenant->ctx, &tenant->peer, address))
		fail_msg("%s", rbx_last_error());
	if (rbx_borrow(tenant->peer, &tenant->remote, TENANT_SLAB_BYTES))
		fail_msg("%s", rbx_last_error());
}

void tenant_open_at(struct tenant *tenant, const char *address,
		    const char *settings)
{
	tenant->server = NULL;
	tenant->ctx = tenant_context(settings);
	borrow(tenant, address);
}

void tenant_open_with(struct tenant *tenant, const struct rbx_options *options)
{
	tenant->server = tenant_server();
	if (rbx_open(&tenant->ctx, options))
		fail_msg("%s", rbx_last_error());
	borrow(tenant, rbx_server_address(tenant->server));
}

void tenant_open(struct tenant *tenant, const char *settings)
{
	struct rbx_server *server = tenant_server();

	tenant_open_at(tenant, rbx_server_address(server), settings);
	tenant->server = server;
}

void tenant_close(struct tenant *tenant)
{
	rbx_return(tenant->remote);
	rbx_peer_close(tenant->peer);
	rbx_close(tenant->ctx);
	if (tenant->server)
		rbx_server_stop(tenant->server);
}

struct rbx_stats tenant_stats(struct rbx_context *ctx)
{
	struct rbx_stats stats;

	rbx_stats_get(ctx, &stats);
	return stats;
}

void tenant_submit(struct tenant *tenant, struct rbx_request *request)
{
	int err;

	while ((err = rbx_remote_submit(tenant->remote, &request, 1)) ==
	       -EAGAIN)
		(void)rbx_wait_room(tenant->ctx, TENANT_WAIT_MS);
	if (err)
		fail_msg("%s", rbx_last_error());
}

int tenant_transfer(struct tenant *tenant, enum rbx_op op, void *buf,
		    uint32_t length_bytes, uint64_t offset)
{
	struct rbx_request request = {
		.op = (uint8_t)op,
		.length_bytes = length_bytes,
		.offset = offset,
		.buf = buf,
	};
	struct rbx_request *done;

	tenant_submit(tenant, &request);
	assert_int_equal(rbx_reap(tenant->ctx, &done, 1, TENANT_WAIT_MS), 1);
	assert_ptr_equal(done, &request);
	return request.status;
}

void tenant_submit_pages(struct tenant *tenant, struct rbx_request *requests,
			 uint8_t *bytes, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		requests[i] = (struct rbx_request){
			.op = RBX_WRITE,
			.length_bytes = RBX_PAGE_BYTES,
			.offset = i * RBX_PAGE_BYTES,
			.buf = bytes + i * RBX_PAGE_BYTES,
		};
		tenant_submit(tenant, &requests[i]);
	}
}

void tenant_reap(struct rbx_context *ctx, uint32_t count)
{
	struct rbx_request *done[64];

	while (count > 0) {
		int taken = rbx_reap(ctx, done, RBX_MIN(count, 64u),
				     TENANT_WAIT_MS);

		assert_true(taken > 0);
		for (int i = 0; i < taken; i++)
			assert_int_equal(done[i]->status, 0);
		count -= (uint32_t)taken;
	}
}

void tenant_fill(uint8_t *bytes, uint64_t length_bytes, uint64_t seed)
{
	fill_bytes(bytes, length_bytes, seed);
}

/* Not a failure of one test: threads go on with memory of this one, and a core
 * tells what the lines do not. */
static void stand_still(const struct rbx_context *ctx, uint32_t reached,
			uint32_t count)
{
	fprintf(stderr, "%u of %u within %d ms\n", reached, count,
		TENANT_WAIT_MS);
	if (ctx)
		standstill_tell(ctx);
	abort();
}

void tenant_wait(struct rbx_context *ctx, const uint32_t *counter,
		 uint32_t count, bool poll)
{
	uint64_t end_ns = rbx_now_ns() + TENANT_WAIT_MS * 1000000ull;

	while (RBX_LOAD_ACQUIRE(counter) < count) {
		if (poll)
			(void)rbx_poll(ctx);
		else
			usleep(200);
		if (rbx_now_ns() > end_ns)
			stand_still(ctx, RBX_LOAD_ACQUIRE(counter), count);
	}
}
