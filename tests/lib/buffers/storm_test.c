/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * storm_test.c - buffers when things go wrong: registrations that are
 * refused, staging memory that is used up, connections that break. No request is
 * lost, and every registration ends.
 */
#include "tests/lib/cable.h"
#include "tests/lib/registering.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/context.h"
#include "lib/buffers/registrar.h"

#define PAGE 4096u
#define THREADS 4

/* ---- Registrations that are refused ----------------------------------------*/

static uint32_t refuse_after; /* atomic: how many are still granted */
static const struct rbx_fabric_ops *true_ops;
static struct rbx_fabric_ops limited_ops;

static int register_or_refuse(struct rbx_device *device,
			      const struct rbx_mr_init *inits, size_t count,
			      struct rbx_mr **mrs, char *error)
{
	if (RBX_LOAD_ACQUIRE(&refuse_after) == 0) {
		snprintf(error, RBX_ERROR_TEXT_MAX,
			 "cannot pin: raise the limit");
		return -ENOMEM;
	}
	RBX_FETCH_ADD(&refuse_after, (uint32_t)-1);
	return true_ops->register_memory(device, inits, count, mrs, error);
}

/* While nobody is looking: neither the poller nor who deregisters. */
static void set_ops(struct rbx_context *ctx, const struct rbx_fabric_ops *ops)
{
	rbx_poller_visit(ctx->pollers[0]);
	pthread_mutex_lock(&ctx->buffers.registrar->work_lock);
	ctx->device->ops = ops;
	pthread_mutex_unlock(&ctx->buffers.registrar->work_lock);
	rbx_poller_leave(ctx->pollers[0]);
}

/* From here on the device of a context grants so many registrations. */
static void limit_registrations(struct rbx_context *ctx, uint32_t count)
{
	true_ops = ctx->device->ops;
	limited_ops = *true_ops;
	limited_ops.register_memory = register_or_refuse;
	RBX_STORE_RELEASE(&refuse_after, count);
	set_ops(ctx, &limited_ops);
}

static void refused_registration_fails_direct_before_anything_is_sent(void **state)
{
	static uint8_t bytes[4][PAGE];
	struct rbx_request requests[4], *list[4];
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, REGISTERED "buffers=direct requests_max=64");
	for (int i = 0; i < 4; i++) {
		requests[i] = (struct rbx_request){ .op = RBX_WRITE,
						    .length_bytes = PAGE,
						    .buf = bytes[i] };
		list[i] = &requests[i];
	}
	limit_registrations(tenant.ctx, 3);
	assert_int_equal(rbx_remote_submit(tenant.remote, list, 4), -ENOMEM);
	assert_non_null(strstr(rbx_last_error(), "raise the limit"));
	assert_non_null(strstr(rbx_last_error(), "buffers=auto"));
	assert_int_equal(tenant_stats(tenant.ctx).work_requests, 0);
	assert_all_end(tenant.ctx);
	/* Nothing is lost by it: neither fragments nor registrations. */
	for (int i = 0; i < 100; i++)
		assert_int_equal(rbx_remote_submit(tenant.remote, list, 4),
				 -ENOMEM);
	RBX_STORE_RELEASE(&refuse_after, UINT32_MAX);
	assert_int_equal(rbx_remote_submit(tenant.remote, list, 4), 0);
	tenant_reap(tenant.ctx, 4);
	assert_all_end(tenant.ctx);
	set_ops(tenant.ctx, true_ops);
	tenant_close(&tenant);
}

static void refused_registration_copies_with_auto(void **state)
{
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, auto_settings);
	limit_registrations(tenant.ctx, 5);
	transfer_any(&tenant, 400);
	assert_int_equal(registered(tenant.ctx), 5);
	assert_true(tenant_stats(tenant.ctx).registration_failures > 0);
	assert_true(tenant_stats(tenant.ctx).staged_bytes > BREAK_EVEN);
	assert_all_end(tenant.ctx);
	set_ops(tenant.ctx, true_ops);
	tenant_close(&tenant);
}

/* ---- Both at once ----------------------------------------------------------*/

/* Reads of one range, of which every third is registered, the others copied;
 * of all threads together more than staging memory holds. */
#define BURST 130u
#define ROUNDS 10
RBX_STATIC_ASSERT((uint64_t)THREADS * BURST * 2 / 3 * BREAK_EVEN >
			  RBX_STAGING_BYTES,
		  "some have to wait for staging memory");

struct storm {
	struct tenant *tenant;
	const uint8_t *model;
	struct rbx_request requests[BURST];
	uint8_t bytes[BURST * BREAK_EVEN];
	uint32_t done_count; /* atomic */
	uint32_t failed_count; /* atomic */
};

static void storm_done(struct rbx_request *request)
{
	struct storm *storm = request->user;

	if (request->status)
		RBX_FETCH_ADD(&storm->failed_count, 1);
	RBX_FETCH_ADD(&storm->done_count, 1);
}

static void storm_round(struct storm *storm)
{
	struct rbx_request *list[BURST];

	memset(storm->bytes, 0, sizeof(storm->bytes));
	for (uint32_t i = 0; i < BURST; i++) {
		storm->requests[i] = (struct rbx_request){
			.op = RBX_READ,
			.length_bytes = BREAK_EVEN - (i % 3 != 0),
			.buf = storm->bytes + i * BREAK_EVEN,
			.complete = storm_done,
			.user = storm,
		};
		list[i] = &storm->requests[i];
	}
	storm->done_count = 0;
	assert_int_equal(rbx_remote_submit(storm->tenant->remote, list, BURST),
			 0);
	tenant_wait(storm->tenant->ctx, &storm->done_count, BURST, false);
	assert_int_equal(storm->failed_count, 0);
	for (uint32_t i = 0; i < BURST; i++)
		assert_memory_equal(storm->bytes + i * BREAK_EVEN,
				    storm->model,
				    storm->requests[i].length_bytes);
}

static void *storm_run(void *storm)
{
	for (int round = 0; round < ROUNDS; round++)
		storm_round(storm);
	return NULL;
}

static void storm_of_both(const char *more_settings)
{
	struct storm *storms = calloc(THREADS, sizeof(*storms));
	uint8_t *model = malloc(BREAK_EVEN);
	pthread_t threads[THREADS];
	struct tenant tenant;
	char settings[256];

	snprintf(settings, sizeof(settings), "%s %s", auto_settings,
		 more_settings);
	tenant_open(&tenant, settings);
	tenant_fill(model, BREAK_EVEN, 11);
	assert_int_equal(tenant_transfer(&tenant, RBX_WRITE, model, BREAK_EVEN,
					 0),
			 0);
	for (int i = 0; i < THREADS; i++) {
		storms[i].tenant = &tenant;
		storms[i].model = model;
		assert_int_equal(pthread_create(&threads[i], NULL, storm_run,
						&storms[i]),
				 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_true(registered(tenant.ctx) > THREADS * ROUNDS * BURST / 3);
	assert_int_equal(tenant_stats(tenant.ctx).registration_failures, 0);
	assert_all_end(tenant.ctx);
	tenant_close(&tenant);
	free(model);
	free(storms);
}

static void copied_and_registered_requests_never_block_each_other(void **state)
{
	(void)state;
	storm_of_both("");
	storm_of_both("mode=doorbell queue_pairs=3 pollers=2 window=512K");
	storm_of_both("mode=single fragment_bytes=16K");
}

/* ---- Connections that break ------------------------------------------------*/

static void *transfer_run(void *tenant)
{
	transfer_any(tenant, 200);
	return NULL;
}

/* What is sent again needs its key as before. */
static void registration_lasts_over_a_broken_connection(void **state)
{
	struct rbx_server *server = tenant_server();
	struct cable *cable = cable_lay(rbx_server_address(server));
	struct tenant tenant;
	pthread_t thread;

	(void)state;
	tenant_open_at(&tenant, cable_address(cable),
		       REGISTERED "buffers=direct fragment_bytes=16K queue_pairs=2 "
				  "peer_timeout_ms=20000");
	assert_int_equal(pthread_create(&thread, NULL, transfer_run, &tenant),
			 0);
	for (int i = 0; i < 10; i++) {
		usleep(30000);
		cable_cut(cable);
	}
	pthread_join(thread, NULL);
	assert_int_equal(tenant_stats(tenant.ctx).staged_bytes, 0);
	assert_int_equal(tenant_stats(tenant.ctx).errors, 0);
	assert_int_equal(registered(tenant.ctx), 400);
	assert_all_end(tenant.ctx);
	tenant_close(&tenant);
	cable_remove(cable);
	rbx_server_stop(server);
}

static void registrations_of_requests_that_fail_end_too(void **state)
{
	static uint8_t bytes[16][BREAK_EVEN];
	struct rbx_server *server = tenant_server();
	struct cable *cable = cable_lay(rbx_server_address(server));
	struct rbx_request requests[16], *list[16], *done[16];
	struct tenant tenant;

	(void)state;
	tenant_open_at(&tenant, cable_address(cable),
		       REGISTERED "buffers=direct peer_timeout_ms=400");
	cable_hold(cable, true);
	for (int i = 0; i < 16; i++) {
		requests[i] = (struct rbx_request){ .op = RBX_WRITE,
						    .buf = bytes[i],
						    .length_bytes =
							    BREAK_EVEN };
		list[i] = &requests[i];
	}
	assert_int_equal(rbx_remote_submit(tenant.remote, list, 16), 0);
	assert_int_equal(registered(tenant.ctx), 16);
	for (int i = 0; i < 16;) {
		int taken = rbx_reap(tenant.ctx, done, 16, TENANT_WAIT_MS);

		assert_true(taken > 0);
		i += taken;
		while (taken-- > 0)
			assert_int_not_equal(done[taken]->status, 0);
	}
	assert_all_end(tenant.ctx);
	tenant_close(&tenant);
	cable_remove(cable);
	rbx_server_stop(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			refused_registration_fails_direct_before_anything_is_sent),
		cmocka_unit_test(refused_registration_copies_with_auto),
		cmocka_unit_test(
			copied_and_registered_requests_never_block_each_other),
		cmocka_unit_test(registration_lasts_over_a_broken_connection),
		cmocka_unit_test(registrations_of_requests_that_fail_end_too),
	};

	return cmocka_run_group_tests(tests, make_tune_file, remove_tune_file);
}
