/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * buffers.c - chooses between copying and registering, see buffers.h.
 *
 * A request, or each segment of it, is registered as a whole. All fragments that it is
 * split into share the keys, and the registration ends with the last of them. Unless
 * regions are cached nothing is kept for the next request. A program may unmap a buffer as
 * soon as its request has completed. Buffers may be unaligned, and those of requests that are
 * outstanding together may overlap: each has its own registration, or a reference of a region.
 *
 * Failure: if registering is refused (too much memory is pinned, or too many
 * registrations are alive), `auto` and `cached` copy that request instead. With buffers=direct
 * submit fails with the device's reason, before anything was sent. If no staging memory
 * is free the combiner waits for completions. Registered requests need no staging memory
 * and copied ones no registration, so neither can block the other for ever.
 */
#include "lib/buffers/buffers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/buffers/cost.h"
#include "lib/buffers/region_cache.h"
#include "lib/buffers/registrar.h"
#include "lib/buffers/segments.h"
#include "lib/context.h"

#define KEY(request) ((request)->reserved[2])
#define HELD(request) ((request)->reserved[3])
#define HAS_KEY ((uint64_t)1 << 32)

int rbx_buffers_check(struct rbx_request *request)
{
	uint32_t lkey;

	KEY(request) = 0;
	HELD(request) = RBX_BUFFERS_HOLD_NOTHING;
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

static int too_many(void)
{
	return rbx_error(-EAGAIN, "%u buffers are registered: submit again after a completion, or use buffers=auto",
			 RBX_REGISTRATIONS_MAX);
}

/* Without a key, memory is copied. */
static int keys_are_short(const struct rbx_context *ctx)
{
	return ctx->buffers.must_register ? too_many() : 0;
}

static bool is_short(const struct rbx_context *ctx, uint32_t length_bytes)
{
	return length_bytes < ctx->buffers.register_from_bytes;
}

/* *mr: NULL if the memory is to be copied. */
static int register_memory(struct rbx_context *ctx, const void *addr,
			   uint32_t length_bytes, uint8_t op, struct rbx_mr **mr)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	int err;

	*mr = NULL;
	if (is_short(ctx, length_bytes))
		return 0;
	err = rbx_registrar_register(ctx->buffers.registrar, (void *)addr,
				     length_bytes,
				     op == RBX_READ ? RBX_LOCAL_WRITE : 0, mr,
				     error);
	if (!err) {
		RBX_ADD_RELAXED(&ctx->counters.registrations, 1);
		return 0;
	}
	*mr = NULL;
	RBX_ADD_RELAXED(&ctx->counters.registration_failures, 1);
	if (!ctx->buffers.must_register)
		return 0;
	if (err == -EAGAIN)
		return too_many();
	return rbx_error(err, "buffers=direct: %s; or use buffers=auto", error);
}

/* The memory of a request, or of a segment of it. */
struct range {
	const void *addr;
	uint32_t length_bytes;
	uint32_t segment;
};

/* The cache, for the requests of one call. */
struct asking {
	struct rbx_region_cache *cache; /* NULL: it is not asked */
	bool is_settled; /* else it is not known whether memory is being changed */
};

/* Before the first look-up of a call, and after the program knew all its addresses. */
static bool is_settled(struct asking *asking)
{
	if (!asking->is_settled && !rbx_region_cache_is_settled(asking->cache))
		asking->cache = NULL;
	asking->is_settled = true;
	return asking->cache;
}

/* Whether the cache has regions of the range now. */
static bool use_take(struct asking *asking, const struct range *range, struct rbx_region_use *use)
{
	char error[RBX_ERROR_TEXT_MAX];

	return asking->cache && range->length_bytes >= RBX_CACHED_BYTES_MIN &&
	       is_settled(asking) &&
	       !rbx_region_cache_take(asking->cache, use, range->addr, range->length_bytes, error);
}

/* Makes a key of each region of a use, and moves the chain behind *end. */
static bool use_list(struct rbx_context *ctx, const struct rbx_region_use *use,
		     const struct range *range, struct rbx_local_key ***end)
{
	struct rbx_local_key *key = rbx_local_keys_take(ctx->buffers.keys, use->count);
	uint64_t at = (uintptr_t)range->addr, range_end = at + range->length_bytes;

	if (!key)
		return false;
	**end = key;
	for (uint32_t i = 0; i < use->count; i++, key = key->next) {
		const struct rbx_mr *mr =
			rbx_region_cache_mr(ctx->buffers.cache, use->parts[i]);
		uint64_t mr_end = (uintptr_t)mr->addr + mr->length_bytes;

		key->addr = at;
		key->length_bytes = (uint32_t)(RBX_MIN(mr_end, range_end) - at);
		key->lkey = mr->lkey;
		key->segment = range->segment;
		key->region = use->parts[i];
		key->mr = NULL;
		at += key->length_bytes;
		*end = &key->next;
	}
	return true;
}

static void use_give(struct rbx_context *ctx, const struct rbx_region_use *use)
{
	rbx_region_cache_give(ctx->buffers.cache, use->parts, use->count);
}

/* The keys of a segment go behind *end: of regions, or one that is registered for it. */
static int segment_register(struct rbx_context *ctx, struct asking *asking,
			    const struct range *range, uint8_t op, struct rbx_local_key ***end)
{
	struct rbx_region_use use;
	struct rbx_local_key *key;
	struct rbx_mr *mr;
	int err;

	if (use_take(asking, range, &use)) {
		if (use_list(ctx, &use, range, end))
			return 0;
		use_give(ctx, &use);
	}
	if (is_short(ctx, range->length_bytes))
		return 0;
	key = rbx_local_keys_take(ctx->buffers.keys, 1);
	if (!key)
		return keys_are_short(ctx);
	err = register_memory(ctx, range->addr, range->length_bytes, op, &mr);
	if (!mr) {
		rbx_local_keys_give(ctx->buffers.keys, key);
		return err;
	}
	key->addr = (uintptr_t)range->addr;
	key->length_bytes = range->length_bytes;
	key->lkey = mr->lkey;
	key->segment = range->segment;
	key->mr = mr;
	**end = key;
	*end = &key->next;
	return 0;
}

static int segments_register(struct rbx_context *ctx, struct asking *asking,
			     struct rbx_request *request)
{
	struct rbx_local_key *first = NULL, **end = &first;
	int err = 0;

	for (uint32_t i = 0; i < request->segments_count && !err; i++) {
		const struct rbx_segment *segment = &request->segments[i];
		const struct range range = { segment->addr, segment->length_bytes, i };

		if (!segment->region)
			err = segment_register(ctx, asking, &range, request->op, &end);
	}
	/* Also after a failure: they are released. */
	if (first)
		HELD(request) = (uintptr_t)first | RBX_BUFFERS_HOLD_KEYS;
	return err;
}

/* Uses the regions that the cache has of the buffer. */
static bool buffer_is_cached(struct rbx_context *ctx, struct asking *asking,
			     struct rbx_request *request)
{
	const struct range range = { request->buf, request->length_bytes, 0 };
	struct rbx_local_key *first = NULL, **end = &first;
	struct rbx_region_use use;

	if (!use_take(asking, &range, &use))
		return false;
	if (use.count == 1) {
		KEY(request) = HAS_KEY | rbx_region_cache_mr(asking->cache, use.parts[0])->lkey;
		HELD(request) = (uint64_t)use.parts[0] * RBX_BUFFERS_HELD | RBX_BUFFERS_HOLD_REGION;
		return true;
	}
	if (!use_list(ctx, &use, &range, &end)) {
		use_give(ctx, &use);
		return false;
	}
	HELD(request) = (uintptr_t)first | RBX_BUFFERS_HOLD_KEYS;
	return true;
}

static int register_one(struct rbx_context *ctx, struct asking *asking,
			struct rbx_request *request)
{
	struct rbx_mr *mr;
	int err;

	if (request->segments)
		return segments_register(ctx, asking, request);
	if (KEY(request) || buffer_is_cached(ctx, asking, request))
		return 0;
	err = register_memory(ctx, request->buf, request->length_bytes,
			      request->op, &mr);
	if (mr) {
		KEY(request) = HAS_KEY | mr->lkey;
		HELD(request) = (uintptr_t)mr | RBX_BUFFERS_HOLD_MR;
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
	struct asking asking = { .cache = ctx->buffers.cache };
	unsigned int i;
	int err;

	if (!ctx->buffers.registrar)
		return 0;
	err = segments_bound(requests, count);
	if (err)
		return err;
	for (i = 0; i < count; i++) {
		err = register_one(ctx, &asking, requests[i]);
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

void rbx_buffers_register_whole(struct rbx_context *ctx, struct rbx_request *request)
{
	struct asking nobody = { .cache = NULL };
	int err;

	rbx_buffers_release(ctx, request);
	err = register_one(ctx, &nobody, request);
	/* With buffers=cached, what cannot be registered is copied. */
	RBX_ASSERT(!err);
}

/* ---- Releasing ------------------------------------------------------------------*/

/* Gives back the regions of a chain, several at once, and retires its registrations. */
static void keys_release(struct rbx_context *ctx, struct rbx_local_key *first)
{
	uint32_t regions[RBX_REGION_PARTS_MAX], count = 0;

	for (struct rbx_local_key *key = first; key; key = key->next) {
		if (key->mr)
			rbx_registrar_retire(ctx->buffers.registrar, key->mr);
		else
			regions[count++] = key->region;
		if (count == RBX_REGION_PARTS_MAX || (count && !key->next)) {
			rbx_region_cache_give(ctx->buffers.cache, regions, count);
			count = 0;
		}
	}
	rbx_local_keys_give(ctx->buffers.keys, first);
}

void rbx_buffers_release(struct rbx_context *ctx, struct rbx_request *request)
{
	uint64_t held = HELD(request);
	uint32_t region = (uint32_t)(held / RBX_BUFFERS_HELD);

	HELD(request) = RBX_BUFFERS_HOLD_NOTHING;
	switch ((enum rbx_buffers_held)(held % RBX_BUFFERS_HELD)) {
	case RBX_BUFFERS_HOLD_MR:
		rbx_registrar_retire(ctx->buffers.registrar,
				     (struct rbx_mr *)(uintptr_t)(held - RBX_BUFFERS_HOLD_MR));
		KEY(request) = 0;
		break;
	case RBX_BUFFERS_HOLD_REGION:
		rbx_region_cache_give(ctx->buffers.cache, &region, 1);
		KEY(request) = 0;
		break;
	case RBX_BUFFERS_HOLD_KEYS:
		keys_release(ctx,
			     (struct rbx_local_key *)(uintptr_t)(held - RBX_BUFFERS_HOLD_KEYS));
		break;
	default:
		break;
	}
}

/* ---- Life -------------------------------------------------------------------------*/

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

/* Rather the rows of the paper than none, if this device does not let itself be measured. */
static const struct rbx_region_cost cost_default = { 250, 16000, 100, 4000 };

static int cache_open(struct rbx_context *ctx)
{
	const struct rbx_options *options = &ctx->options;
	struct rbx_regions_shape shape = {
		.bytes_max = options->region_cache_bytes,
		.regions_max = options->region_cache_regions,
		.policy = rbx_region_policy_find(options->region_policy),
	};
	enum rbx_memory_monitor_mode mode;
	int err = rbx_memory_monitor_mode_parse(options->memory_monitor, &mode);

	if (err)
		return err;
	if (rbx_region_cost_measure(ctx, &shape.cost))
		shape.cost = cost_default;
	return rbx_region_cache_open(&ctx->buffers.cache, ctx->device, &shape, mode);
}

/* Behind what is registered for one request only. If nothing can be kept, the cache is closed. */
static void cache_judge(struct rbx_buffers *buffers)
{
	bool keeps = rbx_region_cache_keeps(buffers->cache);
	size_t at = strlen(buffers->why);

	snprintf(buffers->why + at, sizeof(buffers->why) - at, "; kept: %s%s",
		 keeps ? "" : "none: ", rbx_region_cache_why(buffers->cache));
	if (keeps)
		return;
	rbx_region_cache_close(buffers->cache);
	buffers->cache = NULL;
}

static int registering_open(struct rbx_context *ctx)
{
	struct rbx_buffers *buffers = &ctx->buffers;
	int err = rbx_local_keys_open(&buffers->keys);

	if (err)
		return err;
	err = rbx_registrar_open(&buffers->registrar, ctx->device, made_room, ctx);
	if (err)
		goto out_keys;
	if (strcmp(ctx->options.buffers, "cached") != 0)
		return 0;
	err = cache_open(ctx);
	if (err)
		goto out_registrar;
	cache_judge(buffers);
	return 0;

out_registrar:
	rbx_registrar_close(buffers->registrar);
out_keys:
	rbx_local_keys_close(buffers->keys);
	return err;
}

int rbx_buffers_open(struct rbx_context *ctx)
{
	struct rbx_buffers *buffers = &ctx->buffers;
	bool is_cached = strcmp(ctx->options.buffers, "cached") == 0;

	buffers->must_register = strcmp(ctx->options.buffers, "direct") == 0;
	if (strcmp(ctx->options.buffers, "staging") == 0)
		decide(ctx, UINT64_MAX, "buffers=staging copies all");
	else if (ctx->device->caps.has_any_lkey)
		decide(ctx, UINT64_MAX, "one key covers all memory");
	else if (buffers->must_register)
		decide(ctx, 0, "buffers=direct");
	else
		decide_auto(ctx);
	if (ctx->device->caps.has_any_lkey ||
	    (buffers->register_from_bytes == UINT64_MAX && !is_cached))
		return 0;
	return registering_open(ctx);
}

void rbx_buffers_close(struct rbx_context *ctx)
{
	rbx_region_cache_close(ctx->buffers.cache);
	rbx_registrar_close(ctx->buffers.registrar);
	rbx_local_keys_close(ctx->buffers.keys);
}
