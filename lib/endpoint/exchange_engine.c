/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange_engine.c - the engine of an exchanger: what core/exchange.h wants done is done here.
 *
 * The thread that polls hears the messages of the peer, gives them to the core, and pumps. So
 * an operation whose key has just come is posted by the thread that polls, before the program
 * has seen anything.
 *
 * What the core wants posted is gathered in a batch, which goes out with one doorbell. If the
 * endpoint has no room for all of it, the rest stays in the batch until a poll has made room.
 * An operation that is longer than a work request may be goes in parts.
 */
#include "lib/clock.h"
#include "lib/endpoint/exchange_state.h"

#define TICK_NS 1000000u

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

static void part_ended_locked(struct rbx_exchanger *exchanger, struct rbx_conditional *conditional,
			      int status)
{
	/* A flushed part does not know why the connection is over, which was noted before. */
	if (status == -ECANCELED)
		status = rbx_exchange_broken(exchanger->core);
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
	struct rbx_conditional *conditional = &exchanger->conditionals[post->index];
	struct rbx_exchange_batch *batch = &exchanger->batch;
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
	struct rbx_exchange_batch *batch = &exchanger->batch;
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
	struct rbx_exchange_batch *batch = &exchanger->batch;
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
	struct rbx_exchange_batch *batch = &exchanger->batch;

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
	struct rbx_exchange_batch *batch = &exchanger->batch;
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
void rbx_exchanger_pump_locked(struct rbx_exchanger *exchanger)
{
	receives_post(exchanger);
	do {
		if (!batch_post(exchanger))
			return;
		gather(exchanger);
	} while (exchanger->batch.count);
}

void rbx_exchanger_wake_gather(struct rbx_exchanger *exchanger)
{
	struct rbx_exchange_batch *batch = &exchanger->batch;

	batch->operations[batch->count++] = (struct rbx_operation){
		.kind = RBX_OPERATION_WRITE,
		.flags = RBX_OPERATION_OF_EXCHANGE,
	};
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
	if (wc->status == -EMSGSIZE)
		protocol_broken_locked(exchanger);
	else if (wc->status)
		broken_locked(exchanger, wc->status);
	else if (wc->opcode == RBX_OP_RECV_WRITE ||
		 (wc->flags & (RBX_WC_IMMEDIATE | RBX_WC_INVALIDATED)) ||
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

/* Deadlines are in milliseconds, and polls may be a thousand times as many. */
static void tick_locked(struct rbx_exchanger *exchanger)
{
	uint64_t now_ns = rbx_now_ns();

	if (now_ns - exchanger->ticked_ns < TICK_NS)
		return;
	exchanger->ticked_ns = now_ns;
	rbx_exchange_tick(exchanger->core, now_ns);
}

static unsigned int run(struct rbx_exchanger *exchanger, struct rbx_completion *completions,
			unsigned int max)
{
	bool must_disconnect;
	unsigned int count;

	pthread_mutex_lock(&exchanger->lock);
	tick_locked(exchanger);
	rbx_exchanger_pump_locked(exchanger);
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
