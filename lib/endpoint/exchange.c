/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange.c - conditional operations and offers: what a program calls, see
 * rdmabox/exchange.h. exchange_engine.c does the rest.
 *
 * A call registers the buffer, hands it to the core, and pumps. Both programs are in such a
 * call at the same time, or may be. What is registered for one operation or offer is kept with
 * it, and ends before it completes.
 */
#include <stdlib.h>

#include "include/rdmabox/exchange.h"
#include "lib/clock.h"
#include "lib/endpoint/exchange_state.h"

/* ---- Making and ending ----------------------------------------------------------------*/

static int receives_make(struct rbx_exchanger *exchanger, struct rbx_context *ctx)
{
	const size_t bytes = (size_t)RBX_WIRE_EXCHANGE_RECEIVES * RBX_WIRE_EXCHANGE_BYTES;

	exchanger->receives = calloc(1, bytes);
	if (!exchanger->receives)
		return rbx_error(-ENOMEM, "cannot allocate an endpoint");
	for (uint32_t i = 0; i < RBX_WIRE_EXCHANGE_RECEIVES; i++)
		exchanger->empty[exchanger->empty_count++] =
			exchanger->receives + (size_t)i * RBX_WIRE_EXCHANGE_BYTES;
	if (ctx->device->caps.has_any_lkey)
		return 0;
	return rbx_region_export(ctx, exchanger->endpoint->domain, exchanger->receives, bytes, 0,
				 &exchanger->receives_region);
}

int rbx_exchanger_make(struct rbx_endpoint *endpoint, struct rbx_context *ctx, uint32_t count)
{
	struct rbx_exchanger *exchanger = calloc(1, sizeof(*exchanger));

	if (!exchanger)
		return rbx_error(-ENOMEM, "cannot allocate an endpoint");
	endpoint->exchanger = exchanger;
	pthread_mutex_init(&exchanger->lock, NULL);
	exchanger->endpoint = endpoint;
	exchanger->count = count;
	exchanger->part_bytes = endpoint->paced ? RBX_FRAGMENT_BYTES_MAX :
						  ctx->device->caps.max_message_bytes;
	exchanger->core = malloc(rbx_exchange_size(count));
	exchanger->conditionals = calloc(count, sizeof(*exchanger->conditionals));
	exchanger->offers = calloc(count, sizeof(*exchanger->offers));
	if (!exchanger->core || !exchanger->conditionals || !exchanger->offers)
		return rbx_error(-ENOMEM, "cannot allocate an endpoint");
	rbx_exchange_init(exchanger->core, count, !endpoint->paced);
	return receives_make(exchanger, ctx);
}

void rbx_exchanger_begin(struct rbx_endpoint *endpoint)
{
	struct rbx_exchanger *exchanger = endpoint->exchanger;
	struct rbx_queue *queue = endpoint->queue;

	/* Before a thread that polls knows it: it is to go out first, in an empty batch. */
	rbx_exchanger_wake_gather(exchanger);
	pthread_mutex_lock(&queue->exchanges_lock);
	exchanger->next = queue->exchangers;
	queue->exchangers = exchanger;
	RBX_FETCH_ADD(&queue->exchangers_count, 1);
	pthread_mutex_unlock(&queue->exchanges_lock);
	pthread_mutex_lock(&exchanger->lock);
	rbx_exchanger_pump_locked(exchanger);
	pthread_mutex_unlock(&exchanger->lock);
}

void rbx_exchanger_stop(struct rbx_endpoint *endpoint)
{
	struct rbx_queue *queue = endpoint->queue;
	struct rbx_exchanger **at = &queue->exchangers;

	pthread_mutex_lock(&queue->exchanges_lock);
	while (*at != endpoint->exchanger)
		at = &(*at)->next;
	*at = endpoint->exchanger->next;
	RBX_FETCH_ADD(&queue->exchangers_count, (uint32_t)-1);
	pthread_mutex_unlock(&queue->exchanges_lock);
}

void rbx_exchanger_free(struct rbx_exchanger *exchanger)
{
	if (!exchanger)
		return;
	for (uint32_t i = 0; i < exchanger->count; i++) {
		if (exchanger->conditionals)
			rbx_region_release(exchanger->conditionals[i].own);
		if (exchanger->offers)
			rbx_region_release(exchanger->offers[i].region);
	}
	rbx_region_release(exchanger->receives_region);
	pthread_mutex_destroy(&exchanger->lock);
	free(exchanger->receives);
	free(exchanger->conditionals);
	free(exchanger->offers);
	free(exchanger->core);
	free(exchanger);
}

void rbx_exchanger_cut(struct rbx_exchanger *exchanger)
{
	RBX_STORE_RELEASE(&exchanger->is_cut, true);
}

/* ---- What a program asks for ----------------------------------------------------------*/

static int asked_check(const struct rbx_endpoint *endpoint, const void *addr,
		       uint32_t length_bytes, const char *call)
{
	if (!endpoint || !addr || !length_bytes)
		return rbx_error(-EINVAL, "%s: an endpoint and a buffer must be given", call);
	if (!endpoint->exchanger)
		return rbx_error(-EINVAL, "%s: the endpoint has exchanges=0: set it in the options of both ends",
				 call);
	return rbx_guard_use(endpoint->queue->ctx, call);
}

static uint64_t deadline_ns(uint32_t timeout_ms)
{
	return timeout_ms ? rbx_after_ms(timeout_ms) : UINT64_MAX;
}

/* Puts the refusal of the core into words. */
static int refused(const struct rbx_exchanger *exchanger, int err, uint64_t tag)
{
	const unsigned long long number = tag;

	switch (err) {
	case -EAGAIN:
		return rbx_error(err, "%u are outstanding, as exchanges of the endpoint allows: poll first",
				 exchanger->count);
	case -EEXIST:
		return rbx_error(err, "tag %llu is in use: choose another, or wait until that has completed",
				 number);
	case -EMSGSIZE:
		return rbx_error(err, "tag %llu: the buffer that the other side offers is shorter",
				 number);
	case -EPROTOTYPE:
		return rbx_error(err, "tag %llu: the other side offers its buffer for the other direction",
				 number);
	default:
		return rbx_error(err, "the connection is over");
	}
}

static int buffer_register(const struct rbx_endpoint *endpoint, const struct rbx_segment *buffer,
			   struct rbx_region **own)
{
	struct rbx_context *ctx = endpoint->queue->ctx;
	uint32_t lkey;

	*own = NULL;
	if (buffer->region) {
		if (rbx_region_covers(buffer->region, buffer->addr, buffer->length_bytes, &lkey))
			return 0;
		return rbx_error(-EFAULT, "%u bytes at %p are not in their region",
				 buffer->length_bytes, buffer->addr);
	}
	if (ctx->device->caps.has_any_lkey)
		return 0;
	return rbx_region_export(ctx, endpoint->domain, (void *)(uintptr_t)buffer->addr,
				 buffer->length_bytes, 0, own);
}

static int conditional(struct rbx_endpoint *endpoint, uint16_t access, uint64_t tag,
		       const struct rbx_segment *buffer, uint32_t timeout_ms, void *user)
{
	const struct rbx_exchange_wish wish = {
		.tag = tag,
		.deadline_ns = deadline_ns(timeout_ms),
		.length_bytes = buffer->length_bytes,
		.access = access,
	};
	struct rbx_exchanger *exchanger = endpoint->exchanger;
	struct rbx_region *own;
	int index, err = buffer_register(endpoint, buffer, &own);

	if (err)
		return err;
	pthread_mutex_lock(&exchanger->lock);
	index = rbx_exchange_operate(exchanger->core, &wish);
	if (index >= 0)
		exchanger->conditionals[index] = (struct rbx_conditional){
			.buffer = *buffer,
			.own = own,
			.user = user,
		};
	/* Also if it was refused: the peer is to hear of it. */
	rbx_exchanger_pump_locked(exchanger);
	pthread_mutex_unlock(&exchanger->lock);
	if (index >= 0)
		return 0;
	rbx_region_release(own);
	return refused(exchanger, index, tag);
}

int rbx_conditional_write(struct rbx_endpoint *endpoint, uint64_t tag,
			  const struct rbx_segment *buffer, uint32_t timeout_ms, void *user)
{
	int err = asked_check(endpoint, buffer ? buffer->addr : NULL,
			      buffer ? buffer->length_bytes : 0, "rbx_conditional_write");

	return err ? err : conditional(endpoint, RBX_WIRE_OFFER_TO_WRITE, tag, buffer, timeout_ms,
				       user);
}

int rbx_conditional_read(struct rbx_endpoint *endpoint, uint64_t tag,
			 const struct rbx_segment *buffer, uint32_t timeout_ms, void *user)
{
	int err = asked_check(endpoint, buffer ? buffer->addr : NULL,
			      buffer ? buffer->length_bytes : 0, "rbx_conditional_read");

	return err ? err : conditional(endpoint, RBX_WIRE_OFFER_TO_READ, tag, buffer, timeout_ms,
				       user);
}

static int offer_made(struct rbx_exchanger *exchanger, const struct rbx_exchange_wish *wish,
		      struct rbx_region *region, void *user)
{
	int index;

	pthread_mutex_lock(&exchanger->lock);
	index = rbx_exchange_offer(exchanger->core, wish);
	if (index >= 0)
		exchanger->offers[index] = (struct rbx_offered){ region, user };
	rbx_exchanger_pump_locked(exchanger);
	pthread_mutex_unlock(&exchanger->lock);
	return index;
}

int rbx_offer(struct rbx_endpoint *endpoint, uint64_t tag, void *addr, uint32_t length_bytes,
	      enum rbx_offer_access access, uint32_t timeout_ms, void *user)
{
	struct rbx_exchange_wish wish = {
		.tag = tag,
		.length_bytes = length_bytes,
	};
	struct rbx_region_key key;
	struct rbx_region *region;
	int index, err = asked_check(endpoint, addr, length_bytes, "rbx_offer");

	if (!err && access != RBX_OFFER_TO_WRITE && access != RBX_OFFER_TO_READ)
		err = rbx_error(-EINVAL, "rbx_offer: there is no access %d", (int)access);
	if (!err)
		err = rbx_region_export(endpoint->queue->ctx, endpoint->domain, addr, length_bytes,
					access == RBX_OFFER_TO_WRITE ? RBX_REGION_WRITE :
								       RBX_REGION_READ,
					&region);
	if (err)
		return err;
	rbx_region_key(region, &key);
	wish.deadline_ns = deadline_ns(timeout_ms);
	wish.access = access == RBX_OFFER_TO_WRITE ? RBX_WIRE_OFFER_TO_WRITE :
						     RBX_WIRE_OFFER_TO_READ;
	wish.address = key.address;
	wish.key = key.key;
	index = offer_made(endpoint->exchanger, &wish, region, user);
	if (index >= 0)
		return 0;
	rbx_region_release(region);
	return refused(endpoint->exchanger, index, tag);
}
