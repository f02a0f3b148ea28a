/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * buffers.c - chooses between copying and registering, see buffers.h.
 *
 * A request, or each segment of it, is registered as a whole. All fragments that it is
 * split into share the keys, and the registration ends with the last of them. Nothing is
 * kept for the next request, so a program may unmap a buffer as soon as its request has
 * completed. Buffers may be unaligned, and those of requests that are outstanding
 * together may overlap: each has its own registration.
 *
 * Failure: if registering is refused (too much memory is pinned, or too many
 * registrations are alive), `auto` copies that request instead. With buffers=direct
 * submit fails with the device's reason, before anything was sent. If no staging memory
 * is free the combiner waits for completions. Registered requests need no staging memory
 * and copied ones no registration, so neither can block the other for ever.
 *
 * Left out: a cache of registrations. It would have to know of every munmap().
 */
#include "lib/buffers/buffers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/buffers/cost.h"
#include "lib/context.h"
#include "lib/buffers/registrar.h"
#include "lib/buffers/segments.h"

#define KEY(request) ((request)->reserved[2])
#define REGISTRATION(request) ((request)->reserved[3])
#define HAS_KEY ((uint64_t)1 << 32)

int rbx_buffers_check(struct rbx_request *request)
{
	uint32_t lkey;

	KEY(request) = 0;
	REGISTRATION(request) = 0;
	if (request->segments)
		return rbx_segments_check(request);
	if (!request->region)
		return 0;
	if (!rbx_region_covers(request->region, request->buf,
			       request->length_bytes, &lkey))
		return rbx_error(-EINVAL,
				 "the request's buffer lies outside of its "
				 "region");
	/* The CPU may have to copy it or compute its checksum. */
	if (rbx_region_is_dmabuf(request->region))
		return rbx_error(-EOPNOTSUPP, "a dmabuf cannot be the buffer of a request, as the CPU cannot access it");
	KEY(request) = HAS_KEY | lkey;
	return 0;
}

struct rbx_mr *rbx_buffers_first_mr(const struct rbx_request *request)
{
	return (struct rbx_mr *)(uintptr_t)REGISTRATION(request);
}

/* *mr: NULL if the memory is to be copied. */
static int register_memory(struct rbx_context *ctx, const void *addr,
			   uint32_t length_bytes, uint8_t op, struct rbx_mr **mr)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	int err;

	*mr = NULL;
	if (length_bytes < ctx->buffers.register_from_bytes)
		return 0;
	err = rbx_registrar_register(ctx->buffers.registrar, (void *)addr,
				     length_bytes,
				     op == RBX_READ ? RBX_LOCAL_WRITE : 0, mr,
				     error);
	if (!err) {
		RBX_ADD_RELAXED(&ctx->counters.registrations, 1);
		(*mr)->next = NULL;
		return 0;
	}
	*mr = NULL;
	RBX_ADD_RELAXED(&ctx->counters.registration_failures, 1);
	if (!ctx->buffers.must_register)
		return 0;
	if (err == -EAGAIN)
		return rbx_error(err,
				 "%u buffers are registered: submit again after "
				 "a completion, or use buffers=auto",
				 RBX_REGISTRATIONS_MAX);
	return rbx_error(err, "buffers=direct: %s; or use buffers=auto", error);
}

static int register_segments(struct rbx_context *ctx,
			     struct rbx_request *request)
{
	struct rbx_mr *mr, *last = NULL;
	uint32_t i;
	int err;

	for (i = 0; i < request->segments_count; i++) {
		const struct rbx_segment *segment = &request->segments[i];

		if (segment->region)
			continue;
		err = register_memory(ctx, segment->addr, segment->length_bytes,
				      request->op, &mr);
		if (err)
			return err;
		if (!mr)
			continue;
		if (last)
			last->next = mr;
		else
			REGISTRATION(request) = (uintptr_t)mr;
		last = mr;
	}
	return 0;
}

static int register_one(struct rbx_context *ctx, struct rbx_request *request)
{
	struct rbx_mr *mr;
	int err;

	if (request->segments)
		return register_segments(ctx, request);
	if (KEY(request))
		return 0;
	err = register_memory(ctx, request->buf, request->length_bytes,
			      request->op, &mr);
	if (mr) {
		KEY(request) = HAS_KEY | mr->lkey;
		REGISTRATION(request) = (uintptr_t)mr;
	}
	return err;
}

/* With more segments it would fail however long the caller waits. */
static int segments_bound(struct rbx_request *const requests[],
			  unsigned int count)
{
	uint64_t segments = 0;
	unsigned int i;

	for (i = 0; i < count; i++)
		if (requests[i]->segments)
			segments += requests[i]->segments_count;
	if (segments <= RBX_SUBMIT_SEGMENTS_MAX)
		return 0;
	return rbx_error(-EINVAL, "requests with %llu segments in one call: at most %u are possible if they have to be registered",
			 (unsigned long long)segments, RBX_SUBMIT_SEGMENTS_MAX);
}

int rbx_buffers_register(struct rbx_context *ctx,
			 struct rbx_request *const requests[],
			 unsigned int count)
{
	unsigned int i;
	int err;

	if (!ctx->buffers.registrar)
		return 0;
	err = segments_bound(requests, count);
	if (err)
		return err;
	for (i = 0; i < count; i++) {
		err = register_one(ctx, requests[i]);
		if (err)
			goto out_release;
	}
	return 0;

out_release:
	/* Some segments of the last request may be registered already. */
	do
		rbx_buffers_release(ctx, requests[i]);
	while (i--);
	return err;
}

void rbx_buffers_release(struct rbx_context *ctx, struct rbx_request *request)
{
	struct rbx_mr *mr = rbx_buffers_first_mr(request), *next;

	if (!mr)
		return;
	REGISTRATION(request) = 0;
	for (; mr; mr = next) {
		next = mr->next;
		rbx_registrar_retire(ctx->buffers.registrar, mr);
	}
}

static void made_room(void *user, uint32_t count)
{
	struct rbx_context *ctx = user;

	RBX_ADD_RELAXED(&ctx->counters.deregistrations, count);
	rbx_context_made_room(ctx);
}

static void decide(struct rbx_context *ctx, uint64_t from_bytes,
		   const char *why)
{
	struct rbx_buffers *buffers = &ctx->buffers;

	buffers->register_from_bytes = from_bytes;
	if (from_bytes == UINT64_MAX)
		snprintf(buffers->why, sizeof(buffers->why), "none: %s", why);
	else
		snprintf(buffers->why, sizeof(buffers->why),
			 "from %llu bytes: %s", (unsigned long long)from_bytes,
			 why);
}

static void decide_auto(struct rbx_context *ctx)
{
	uint64_t from_bytes = ctx->tuning.break_even_bytes;

	if (from_bytes)
		decide(ctx, from_bytes, "as the tuning file says");
	else
		decide(ctx, rbx_buffer_cost_quick(ctx), "as measured at open");
}

int rbx_buffers_open(struct rbx_context *ctx)
{
	struct rbx_buffers *buffers = &ctx->buffers;

	buffers->must_register = strcmp(ctx->options.buffers, "direct") == 0;
	if (strcmp(ctx->options.buffers, "staging") == 0)
		decide(ctx, UINT64_MAX, "buffers=staging copies all");
	else if (ctx->device->caps.has_any_lkey)
		decide(ctx, UINT64_MAX, "one key covers all memory");
	else if (buffers->must_register)
		decide(ctx, 0, "buffers=direct");
	else
		decide_auto(ctx);
	if (buffers->register_from_bytes == UINT64_MAX)
		return 0;
	return rbx_registrar_open(&buffers->registrar, ctx->device, made_room,
				  ctx);
}

void rbx_buffers_close(struct rbx_context *ctx)
{
	rbx_registrar_close(ctx->buffers.registrar);
}
