/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* endpoints.c - see endpoints.h. */
#include "tests/lib/endpoints.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WAIT_MS 20000

struct rbx_endpoint_options endpoint_options;

static const char *fabric, *device;

const char *context_option;

struct rbx_context *context_open(void)
{
	struct rbx_options options;
	struct rbx_context *ctx;
	char text[64];

	rbx_options_defaults(&options);
	options.insecure = 1;
	snprintf(text, sizeof(text), "fabric=%s", fabric);
	assert_int_equal(rbx_options_set(&options, text), 0);
	snprintf(text, sizeof(text), "device=%s", device);
	assert_int_equal(rbx_options_set(&options, text), 0);
	assert_int_equal(rbx_options_set(&options, "tune_file=none"), 0);
	assert_int_equal(rbx_options_set(&options, context_option), 0);
	if (rbx_open(&ctx, &options))
		fail_msg("%s", rbx_last_error());
	return ctx;
}

void device_play(struct rbx_context *ctx, const struct rbx_fabric_ops *ops)
{
	for (uint32_t i = 0; i < ctx->poller_count; i++)
		rbx_poller_visit(ctx->pollers[i]);
	ctx->device->ops = ops;
	for (uint32_t i = 0; i < ctx->poller_count; i++)
		rbx_poller_leave(ctx->pollers[i]);
}

const char *listen_address(void)
{
	const char *address = getenv("RBX_TEST_ADDRESS");

	return address ? address : "127.0.0.1:0";
}

static uint8_t *memory_map(const struct side *side)
{
	uint8_t *memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE,
			       MAP_SHARED, side->memory_fd, 0);

	assert_true(memory != MAP_FAILED);
	return memory;
}

void side_open(struct side *side)
{
	uint32_t rights = RBX_REGION_READ | RBX_REGION_WRITE;

	side->ctx = context_open();
	side->limits.size_bytes = sizeof(side->limits);
	assert_int_equal(rbx_endpoint_limits(side->ctx, &side->limits), 0);
	if (side->limits.has_atomics)
		rights |= RBX_REGION_ATOMIC;
	assert_int_equal(rbx_queue_create(side->ctx, 1024, &side->queue), 0);
	side->memory_fd = memfd_create("test", MFD_CLOEXEC);
	assert_int_equal(ftruncate(side->memory_fd, MEMORY_BYTES), 0);
	side->memory = memory_map(side);
	side->of_device = memory_map(side);
	if (rbx_region_export(side->ctx, NULL, side->of_device, MEMORY_BYTES, rights,
			      &side->region))
		fail_msg("%s", rbx_last_error());
	rbx_region_key(side->region, &side->key);
}

void side_close(struct side *side)
{
	rbx_endpoint_close(side->endpoint);
	if (side->region)
		rbx_region_release(side->region);
	assert_int_equal(rbx_queue_destroy(side->queue), 0);
	assert_int_equal(rbx_close(side->ctx), 0);
	munmap(side->memory, MEMORY_BYTES);
	munmap(side->of_device, MEMORY_BYTES);
	close(side->memory_fd);
}

void sides_open(struct endpoints *endpoints)
{
	memset(endpoints, 0, sizeof(*endpoints));
	side_open(&endpoints->a);
	side_open(&endpoints->b);
	if (rbx_endpoint_listen(endpoints->b.ctx, listen_address(),
				&endpoints->listener))
		fail_msg("%s", rbx_last_error());
}

void sides_close(struct endpoints *endpoints)
{
	rbx_endpoint_listener_close(endpoints->listener);
	side_close(&endpoints->a);
	side_close(&endpoints->b);
}

static void *answer(void *user)
{
	struct meeting *meeting = user;
	struct endpoints *endpoints = meeting->endpoints;
	struct rbx_endpoint_request *request;
	struct rbx_endpoint_options options;
	const void *data;

	if (rbx_endpoint_next_request(endpoints->listener, WAIT_MS, &request))
		return (void *)rbx_last_error();
	data = rbx_endpoint_request_data(request, &meeting->heard_bytes);
	memcpy(meeting->heard, data, meeting->heard_bytes);
	if (!meeting->b_options) {
		rbx_endpoint_reject(request, &meeting->b_data);
		return NULL;
	}
	options = *meeting->b_options;
	options.queue = endpoints->b.queue;
	return rbx_endpoint_accept(request, &options, &meeting->b_data,
				   &endpoints->b.endpoint) ?
		       (void *)rbx_last_error() :
		       NULL;
}

int meet(struct meeting *meeting)
{
	struct endpoints *endpoints = meeting->endpoints;
	pthread_t thread;
	void *failure;
	int err;

	meeting->a_options.queue = endpoints->a.queue;
	assert_int_equal(pthread_create(&thread, NULL, answer, meeting), 0);
	err = rbx_endpoint_connect(
		endpoints->a.ctx,
		rbx_endpoint_listener_address(endpoints->listener),
		&meeting->a_options, &meeting->a_data, &meeting->answer,
		&endpoints->a.endpoint);
	pthread_join(thread, &failure);
	if (failure)
		fail_msg("who listens: %s", (const char *)failure);
	return err;
}

void endpoints_open(struct endpoints *endpoints)
{
	struct meeting meeting = {
		.endpoints = endpoints,
		.a_options = endpoint_options,
		.b_options = &endpoint_options,
	};

	sides_open(endpoints);
	if (meet(&meeting))
		fail_msg("%s", rbx_last_error());
}

void endpoints_close(struct endpoints *endpoints)
{
	sides_close(endpoints);
}

struct rbx_segment segment_of(const struct side *side, size_t offset,
			      uint32_t length_bytes)
{
	return (struct rbx_segment){ side->of_device + offset, length_bytes,
				     side->region };
}

struct rbx_completion next_of(const struct side *side)
{
	struct rbx_completion completion;

	if (rbx_queue_poll(side->queue, &completion, 1, WAIT_MS) != 1)
		fail_msg("nothing completes: %s", rbx_last_error());
	return completion;
}

struct rbx_completion expect(const struct side *side,
			     enum rbx_completion_kind kind, uintptr_t user,
			     int status)
{
	struct rbx_completion completion = next_of(side);

	assert_int_equal(completion.status, status);
	assert_int_equal(completion.kind == RBX_COMPLETION_POSTED,
			 kind == RBX_COMPLETION_POSTED);
	if (status == 0)
		assert_int_equal(completion.kind, kind);
	assert_int_equal((uintptr_t)completion.user, user);
	assert_ptr_equal(completion.endpoint, side->endpoint);
	return completion;
}

struct rbx_operation operation_at(const struct side *there,
				  enum rbx_operation_kind kind, size_t offset)
{
	return (struct rbx_operation){
		.kind = kind,
		.key = there->key.key,
		.address = there->key.address + offset,
		.user = (void *)(uintptr_t)(kind + 1),
	};
}

void receive_at(const struct side *side, size_t offset, uint32_t length_bytes,
		uintptr_t user)
{
	struct rbx_segment segment = segment_of(side, offset, length_bytes);
	struct rbx_receive receive = { &segment, 1, (void *)user };

	if (rbx_endpoint_receive(side->endpoint, &receive, 1))
		fail_msg("%s", rbx_last_error());
}

int post_one(const struct side *side, struct rbx_operation operation,
	     size_t offset, uint32_t length_bytes)
{
	struct rbx_segment segment = segment_of(side, offset, length_bytes);

	operation.segments = &segment;
	operation.segments_count = 1;
	return rbx_endpoint_post(side->endpoint, &operation, 1);
}

static int run_on(const char *wanted_fabric, const char *wanted_device,
		  const struct CMUnitTest *tests, size_t count)
{
	fabric = wanted_fabric;
	device = wanted_device;
	endpoint_options = (struct rbx_endpoint_options){
		.size_bytes = sizeof(endpoint_options),
		.send_depth = 64,
		.receive_depth = 64,
		.segments = 4,
		.receive_segments = 4,
		.inline_bytes = 32,
		.timeout_ms = WAIT_MS,
	};
	context_option = "mode=hybrid";
	print_message("on %s %s\n", fabric, device);
	return _cmocka_run_group_tests("endpoints", tests, count, NULL, NULL);
}

int endpoints_run(const struct CMUnitTest *tests, size_t count)
{
	const char *wanted = getenv("RBX_TEST_FABRIC");

	setenv("CMOCKA_MESSAGE_OUTPUT", "stdout", 0);
	if (wanted)
		return run_on(wanted, "", tests, count);
	return run_on("soft", "", tests, count) ||
	       run_on("soft:tcp", "", tests, count) ||
	       run_on("soft:tcp", "registered", tests, count);
}
