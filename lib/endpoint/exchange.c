/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange.c - the host of an exchange: what core/exchange.h wants done is done here.
 *
 * A call of the program registers the buffer, then hands it to the core, then pumps: it
 * posts what the core has to post. The thread that polls hears the messages of the peer,
 * gives them to the core and pumps too. So an operation whose key has just come is posted by
 * the thread that polls, before the program has seen anything.
 *
 * What the core wants posted is gathered in a batch, which goes out with one doorbell. If the
 * endpoint has no room for all of it, the rest stays in the batch until a poll has made room.
 * An operation that is longer than a work request may be goes in parts.
 */
#include "lib/endpoint/exchange.h"

#include <stdlib.h>

#include "core/exchange.h"
#include "include/rdmabox/exchange.h"
#include "lib/clock.h"
#include "lib/endpoint/paced.h"

/* Memory of an operation of ours. */
struct conditional {
	struct rbx_exchanger *exchanger;
	struct rbx_segment buffer;
	struct rbx_region *own; /* registered for it; NULL: its region or any key does */
	void *user;
	uint32_t parts_count; /* gathered, and not ended */
	bool is_whole; /* all of it is gathered */
	int status; /* the first failure of a part */
};

struct offered {
	struct rbx_region *region; /* NULL: the entry is free */
	void *user;
};

/* What is to be posted. */
struct batch {
	uint32_t at, count;
	struct rbx_operation operations[RBX_CHAIN_MAX];
	struct rbx_segment segments[RBX_CHAIN_MAX];
	uint8_t bytes[RBX_CHAIN_MAX][RBX_WIRE_EXCHANGE_BYTES];
};

struct rbx_exchanger {
	struct rbx_endpoint *endpoint;
	struct rbx_exchanger *next; /* of the queue, guarded by its exchanges_lock */
	bool is_cut; /* atomic: by the program */
	uint32_t count;
	uint32_t part_bytes; /* of an operation at most */
	uint8_t *receives; /* RBX_WIRE_EXCHANGE_RECEIVES of them */
	struct rbx_region *receives_region; /* NULL: any key does */

	pthread_mutex_t lock; /* guards what follows */
	struct rbx_exchange *core;
	bool must_disconnect; /* the peer has broken the protocol */
	struct rbx_exchange_post posting; /* the operation that is gathered */
	uint32_t posting_bytes; /* of it are gathered */
	bool is_posting;
	struct batch batch;
	uint8_t *empty[RBX_WIRE_EXCHANGE_RECEIVES]; /* receives to be posted */
	uint32_t empty_count;
	struct conditional *conditionals;
	struct offered *offers;
};

/* ---- The end of a connection --------------------------------------------------------*/

/* What a failed work request says of all the others. */
static int cause_of(struct rbx_exchanger *exchanger, int status)
{
	if (RBX_LOAD_ACQUIRE(&exchanger->is_cut))
		return -ECANCELED;
	if (status == -ECANCELED || status == -EHOSTUNREACH || status == -ETIMEDOUT)
		return -EHOSTUNREACH;
	return -ECANCELED;
}

static void broken_locked(struct rbx_exchanger *exchanger, int status)
{
	rbx_exchange_break(exchanger->core, cause_of(exchanger, status));
	exchanger->empty_count = 0;
}

static void protocol_broken_locked(struct rbx_exchanger *exchanger)
{
	rbx_exchange_break(exchanger->core, -EPROTO);
	exchanger->empty_count = 0;
	exchanger->must_disconnect = true;
}

static void part_ended_locked(struct rbx_exchanger *exchanger, struct conditional *conditional,
			      int status)
{
	/* A flushed part does not know why the connection is over. */
	if (status == -ECANCELED)
		status = cause_of(exchanger, status);
	if (!conditional->status)
		conditional->status = status;
	conditional->parts_count--;
	if (conditional->is_whole && !conditional->parts_count)
		rbx_exchange_completed(exchanger->core,
				       (uint32_t)(conditional - exchanger->conditionals),
				       conditional->status);
}

/* ---- Posting ------------------------------------------------------------------------*/

static void gather_part(struct rbx_exchanger *exchanger)
{
	const struct rbx_exchange_post *post = &exchanger->posting;
	struct conditional *conditional = &exchanger->conditionals[post->index];
	struct batch *batch = &exchanger->batch;
	uint32_t from_bytes = exchanger->posting_bytes;
	uint32_t length_bytes = RBX_MIN(post->length_bytes - from_bytes, exchanger->part_bytes);

	batch->segments[batch->count] = (struct rbx_segment){
		.addr = (const uint8_t *)conditional->buffer.addr + from_bytes,
		.length_bytes = length_bytes,
		.region = conditional->own ? conditional->own : conditional->buffer.region,
	};
	batch->operations[batch->count] = (struct rbx_operation){
		.kind = post->access == RBX_WIRE_OFFER_TO_WRITE ? RBX_OPERATION_WRITE :
								  RBX_OPERATION_READ,
		.flags = RBX_OPERATION_OF_EXCHANGE,
		.segments = &batch->segments[batch->count],
		.segments_count = 1,
		.key = post->key,
		.address = post->address + from_bytes,
		.user = conditional,
	};
	batch->count++;
	conditional->parts_count++;
	exchanger->posting_bytes += length_bytes;
	exchanger->is_posting = exchanger->posting_bytes < post->length_bytes;
	conditional->is_whole = !exchanger->is_posting;
}

static void gather_message(struct rbx_exchanger *exchanger,
			   const struct rbx_wire_exchange *message)
{
	struct batch *batch = &exchanger->batch;
	uint8_t *bytes = batch->bytes[batch->count];

	rbx_wire_exchange_encode(message, bytes);
	batch->segments[batch->count] = (struct rbx_segment){
		.addr = bytes,
		.length_bytes = RBX_WIRE_EXCHANGE_BYTES,
	};
	batch->operations[batch->count] = (struct rbx_operation){
		.kind = RBX_OPERATION_SEND,
		.flags = RBX_OPERATION_OF_EXCHANGE | RBX_OPERATION_INLINE |
			 RBX_OPERATION_SILENT |
			 (exchanger->endpoint->paced ? RBX_OPERATION_URGENT : 0),
		.segments = &batch->segments[batch->count],
		.segments_count = 1,
	};
	batch->count++;
}

/* Messages come behind the operations, as END may have to be behind its write. */
static void gather(struct rbx_exchanger *exchanger)
{
	struct batch *batch = &exchanger->batch;
	struct rbx_wire_exchange message;

	batch->at = batch->count = 0;
	while (batch->count < RBX_CHAIN_MAX) {
		if (!exchanger->is_posting) {
			if (!rbx_exchange_next_post(exchanger->core, &exchanger->posting))
				break;
			rbx_exchange_posted(exchanger->core, exchanger->posting.index);
			exchanger->posting_bytes = 0;
		}
		gather_part(exchanger);
	}
	while (batch->count < RBX_CHAIN_MAX &&
	       rbx_exchange_next_message(exchanger->core, &message))
		gather_message(exchanger, &message);
}

/* The device has failed. What it did not take does not complete. */
static void batch_drop(struct rbx_exchanger *exchanger)
{
	struct batch *batch = &exchanger->batch;

	broken_locked(exchanger, -EIO);
	if (exchanger->is_posting)
		exchanger->conditionals[exchanger->posting.index].is_whole = true;
	exchanger->is_posting = false;
	for (; batch->at < batch->count; batch->at++)
		if (batch->operations[batch->at].user)
			part_ended_locked(exchanger, batch->operations[batch->at].user, -EIO);
}

/* False: there is no room for all of it. */
static bool batch_post(struct rbx_exchanger *exchanger)
{
	struct batch *batch = &exchanger->batch;
	uint32_t wanted = batch->count - batch->at;

	while (batch->at < batch->count) {
		uint32_t taken = 0;
		int err = rbx_endpoint_post_checked(exchanger->endpoint,
						    &batch->operations[batch->at], wanted,
						    &taken);

		batch->at += taken;
		if (err == -EAGAIN && wanted == 1)
			return false;
		if (err && err != -EAGAIN)
			batch_drop(exchanger);
		wanted = 1;
	}
	return true;
}

static void receives_post(struct rbx_exchanger *exchanger)
{
	struct rbx_receive receives[RBX_CHAIN_MAX];
	struct rbx_segment segments[RBX_CHAIN_MAX];

	while (exchanger->empty_count) {
		uint32_t count = RBX_MIN(exchanger->empty_count, RBX_CHAIN_MAX);

		for (uint32_t i = 0; i < count; i++) {
			uint8_t *bytes = exchanger->empty[--exchanger->empty_count];

			segments[i] = (struct rbx_segment){ bytes, RBX_WIRE_EXCHANGE_BYTES,
							    exchanger->receives_region };
			receives[i] = (struct rbx_receive){ &segments[i], 1, bytes };
		}
		if (rbx_endpoint_receive_checked(exchanger->endpoint, receives, count))
			broken_locked(exchanger, -EIO);
	}
}

/* Receives first: with an answer of ours the peer may send more. */
static void pump_locked(struct rbx_exchanger *exchanger)
{
	receives_post(exchanger);
	do {
		if (!batch_post(exchanger))
			return;
		gather(exchanger);
	} while (exchanger->batch.count);
}

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

/* A write of nothing. A thread that polls may sleep since there was no exchanger: when it
 * completes, that thread begins to look at deadlines. */
static void wake_gather(struct rbx_exchanger *exchanger)
{
	struct batch *batch = &exchanger->batch;

	batch->operations[batch->count++] = (struct rbx_operation){
		.kind = RBX_OPERATION_WRITE,
		.flags = RBX_OPERATION_OF_EXCHANGE,
	};
}

void rbx_exchanger_begin(struct rbx_endpoint *endpoint)
{
	struct rbx_exchanger *exchanger = endpoint->exchanger;
	struct rbx_queue *queue = endpoint->queue;

	pthread_mutex_lock(&queue->exchanges_lock);
	exchanger->next = queue->exchangers;
	queue->exchangers = exchanger;
	RBX_FETCH_ADD(&queue->exchangers_count, 1);
	pthread_mutex_unlock(&queue->exchanges_lock);
	pthread_mutex_lock(&exchanger->lock);
	wake_gather(exchanger);
	pump_locked(exchanger);
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

/* ---- Polling --------------------------------------------------------------------------*/

void rbx_exchanger_posted(struct rbx_exchanger *exchanger, void *user, int status)
{
	pthread_mutex_lock(&exchanger->lock);
	if (status)
		broken_locked(exchanger, status);
	if (user)
		part_ended_locked(exchanger, user, status);
	pthread_mutex_unlock(&exchanger->lock);
}

void rbx_exchanger_received(struct rbx_exchanger *exchanger, uint8_t *bytes,
			    const struct rbx_wc *wc)
{
	struct rbx_wire_exchange message;

	pthread_mutex_lock(&exchanger->lock);
	if (wc->status)
		broken_locked(exchanger, wc->status);
	else if (wc->opcode == RBX_OP_RECV_WRITE || (wc->flags & RBX_WC_IMMEDIATE) ||
		 rbx_wire_exchange_decode(bytes, wc->length_bytes, &message) ||
		 rbx_exchange_hear(exchanger->core, &message))
		protocol_broken_locked(exchanger);
	else
		exchanger->empty[exchanger->empty_count++] = bytes;
	pthread_mutex_unlock(&exchanger->lock);
}

/* Nobody reaches the memory of an offer after this. */
static void keys_end(struct rbx_exchanger *exchanger)
{
	uint32_t index;

	while (rbx_exchange_next_key(exchanger->core, &index)) {
		struct rbx_region *region = exchanger->offers[index].region;

		exchanger->offers[index].region = NULL;
		pthread_mutex_unlock(&exchanger->lock);
		rbx_region_release(region);
		pthread_mutex_lock(&exchanger->lock);
		rbx_exchange_key_ended(exchanger->core, index);
	}
}

static void completion_fill(struct rbx_exchanger *exchanger, const struct rbx_exchange_end *end,
			    struct rbx_completion *completion)
{
	*completion = (struct rbx_completion){
		.endpoint = exchanger->endpoint,
		.user = end->is_offer ? exchanger->offers[end->index].user :
					exchanger->conditionals[end->index].user,
		.status = end->status,
		.kind = end->is_offer ? RBX_COMPLETION_OFFERED : RBX_COMPLETION_POSTED,
		.length_bytes = end->status ? 0 : end->length_bytes,
	};
}

static unsigned int ends_take(struct rbx_exchanger *exchanger, struct rbx_completion *completions,
			      unsigned int max)
{
	struct rbx_exchange_end end;
	unsigned int count = 0;

	while (count < max && rbx_exchange_next_end(exchanger->core, &end)) {
		struct rbx_region *own = NULL;

		completion_fill(exchanger, &end, &completions[count++]);
		if (end.is_offer)
			continue;
		own = exchanger->conditionals[end.index].own;
		exchanger->conditionals[end.index].own = NULL;
		if (!own)
			continue;
		pthread_mutex_unlock(&exchanger->lock);
		rbx_region_release(own);
		pthread_mutex_lock(&exchanger->lock);
	}
	return count;
}

static unsigned int run(struct rbx_exchanger *exchanger, struct rbx_completion *completions,
			unsigned int max)
{
	bool must_disconnect;
	unsigned int count;

	pthread_mutex_lock(&exchanger->lock);
	rbx_exchange_tick(exchanger->core, rbx_now_ns());
	pump_locked(exchanger);
	keys_end(exchanger);
	count = ends_take(exchanger, completions, max);
	must_disconnect = exchanger->must_disconnect;
	exchanger->must_disconnect = false;
	pthread_mutex_unlock(&exchanger->lock);
	if (must_disconnect)
		rbx_endpoint_cut(exchanger->endpoint);
	return count;
}

unsigned int rbx_exchangers_run(struct rbx_queue *queue, struct rbx_completion *completions,
				unsigned int max)
{
	struct rbx_exchanger *exchanger;
	unsigned int count = 0;

	pthread_mutex_lock(&queue->exchanges_lock);
	for (exchanger = queue->exchangers; exchanger; exchanger = exchanger->next)
		count += run(exchanger, &completions[count], max - count);
	pthread_mutex_unlock(&queue->exchanges_lock);
	return count;
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
		exchanger->conditionals[index] = (struct conditional){
			.exchanger = exchanger,
			.buffer = *buffer,
			.own = own,
			.user = user,
		};
	/* Also if it was refused: the peer is to hear of it. */
	pump_locked(exchanger);
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
		exchanger->offers[index] = (struct offered){ region, user };
	pump_locked(exchanger);
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
