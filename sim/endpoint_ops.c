/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint_ops.c - the operations that an end posts to its endpoint, in chains.
 *
 * Operations end in order, and each that is not silent is reported once. A silent one is
 * known to have succeeded when a later one has ended, or when its place is free again. A
 * paced end has no silent ones; its messages and atomics end in order, and all others in any
 * order.
 */
#include <errno.h>
#include <string.h>

#include "sim/endpoint_end.h"
#include "sim/fail.h"
#include "sim/tally.h"

/* Longer than any operation takes, and less than the silence that either end allows. */
#define ROOM_NS (4000 * RBX_SIM_MS)

/* ---- Operations -------------------------------------------------------------*/

static struct rbx_sim_op *op_at(const struct rbx_sim_end *end, uint32_t number)
{
	return &end->buffers->ops[number % RBX_SIM_OPS];
}

static void op_good(struct rbx_sim_end *end, struct rbx_sim_op *op)
{
	uint8_t wanted[RBX_SIM_TEXT_BYTES];
	uint32_t length;

	if (op->must_fail)
		rbx_sim_fail("revoked-key", "a WRITE succeeded after its key had ended");
	switch (op->kind) {
	case OP_MESSAGE:
		rbx_sim_endpoint_said(end->connection, end->side, op->number, 0);
		break;
	case OP_SCRATCH_READ:
		length = rbx_sim_text_make(wanted, end->connection, end->side,
					   RBX_SIM_TEXT_SCRATCH, op->number);
		if (memcmp(op->text, wanted, length) != 0)
			rbx_sim_fail("contents", "a READ returns data that was not written before");
		rbx_sim_tally(RBX_SIM_TALLY_endpoint_reads, 1);
		break;
	case OP_ATOMIC:
		if (op->before != op->number - 1)
			rbx_sim_fail("contents", "atomic %u finds %llu",
				     op->number,
				     (unsigned long long)op->before);
		break;
	default:
		break;
	}
}

/* Also allows the status of a bad key: there are faults for it, and keys end. */
static void status_check(const struct rbx_sim_op *op, int status)
{
	static const int may_be[] = { -ECANCELED, -EHOSTUNREACH, -ETIMEDOUT,
				      -ENOBUFS, -EACCES };

	for (size_t i = 0; i < sizeof(may_be) / sizeof(may_be[0]); i++)
		if (may_be[i] == status)
			return;
	rbx_sim_fail("status", "operation %d ends with %d", (int)op->kind,
		     status);
}

/* The oldest was not reported, and a later one has ended, or its place is free. */
static void oldest_ended(struct rbx_sim_end *end)
{
	struct rbx_sim_op *oldest = op_at(end, end->first++);

	if (!oldest->is_silent)
		rbx_sim_fail("order", "the end of an operation was not reported");
	op_good(end, oldest);
}

static void op_failed(struct rbx_sim_end *end, const struct rbx_sim_op *op,
		      int status)
{
	status_check(op, status);
	rbx_sim_end_stream(end)->has_failed = true;
	end->is_over = true;
	rbx_sim_tally(RBX_SIM_TALLY_endpoint_failures, 1);
}

static void paced_ended(struct rbx_sim_end *end, struct rbx_sim_op *op,
			int status)
{
	if (op->has_ended)
		rbx_sim_fail("completed-once", "an operation ends twice");
	op->has_ended = true;
	while (end->first != end->posted && op_at(end, end->first)->has_ended)
		end->first++;
	rbx_sim_tally(RBX_SIM_TALLY_endpoint_paced, 1);
	if (status)
		op_failed(end, op, status);
	else
		op_good(end, op);
}

void rbx_sim_ops_ended(struct rbx_sim_end *end,
		       const struct rbx_completion *completion)
{
	struct rbx_sim_stream *stream = rbx_sim_end_stream(end);
	struct rbx_sim_op *op = completion->user;

	if (end->options.paced) {
		paced_ended(end, op, completion->status);
		return;
	}
	while (end->first != end->posted && op_at(end, end->first) != op)
		oldest_ended(end);
	if (end->first++ == end->posted)
		rbx_sim_fail("completed-once", "an operation ends that is not posted");
	if (completion->status != 0) {
		op_failed(end, op, completion->status);
		return;
	}
	if (stream->has_failed)
		rbx_sim_fail("order", "an operation ends well after one that has failed");
	op_good(end, op);
}

bool rbx_sim_ops_wait(const struct rbx_sim_end *end)
{
	for (uint32_t at = end->first; at != end->posted; at++)
		if (!op_at(end, at)->is_silent)
			return !end->is_cut_short;
	return false;
}

void rbx_sim_ops_drained(struct rbx_sim_end *end)
{
	while (end->first != end->posted && !end->is_cut_short)
		oldest_ended(end);
}

/* ---- Chains -----------------------------------------------------------------*/

/* A chain while it is made: operations and their segments. */
struct chain {
	struct rbx_operation operations[RBX_SIM_CHAIN + 1];
	struct rbx_segment segments[RBX_SIM_CHAIN + 1];
	uint32_t count;
};

static struct rbx_sim_op *add(struct rbx_sim_end *end, struct chain *chain,
			      enum rbx_sim_op_kind kind, uint32_t number,
			      const struct rbx_operation *operation, uint32_t length)
{
	struct rbx_sim_op *op = op_at(end, end->posted + chain->count);
	struct rbx_operation *to = &chain->operations[chain->count];

	*to = *operation;
	if (end->options.paced)
		to->flags &= ~(uint32_t)RBX_OPERATION_SILENT;
	op->has_ended = false;
	op->kind = kind;
	op->number = number;
	op->must_fail = false;
	op->is_silent = to->flags & RBX_OPERATION_SILENT;
	chain->segments[chain->count] =
		(struct rbx_segment){ op->text, length, end->local };
	to->segments = &chain->segments[chain->count++];
	to->segments_count = 1;
	to->user = op;
	return op;
}

static uint64_t there(const struct rbx_sim_end *end, const void *in_exported)
{
	return end->other.exported + (uint64_t)((const char *)in_exported -
						(const char *)end->exported);
}

static void add_message(struct rbx_sim_end *end, struct chain *chain, bool is_last)
{
	struct rbx_sim_stream *stream = rbx_sim_end_stream(end);
	uint32_t number = ++stream->said, length;
	bool window_is_free = number <= stream->heard + RBX_SIM_WINDOWS;
	enum rbx_sim_text kind = is_last ?
		RBX_SIM_TEXT_SENT_INVALIDATE :
		(enum rbx_sim_text[]){ RBX_SIM_TEXT_SENT,
				       RBX_SIM_TEXT_SENT_IMMEDIATE,
				       RBX_SIM_TEXT_WRITTEN }[rbx_random_below(
			&end->random, window_is_free ? 3 : 2)];
	struct rbx_operation operation = {
		.kind = kind == RBX_SIM_TEXT_WRITTEN ? RBX_OPERATION_WRITE :
						       RBX_OPERATION_SEND,
		.flags = rbx_random_below(&end->random, 3) ?
				 0 :
				 RBX_OPERATION_SILENT,
		.key = end->other.exported_key,
		.address = there(end,
				 end->exported->written[number %
							RBX_SIM_WINDOWS]),
		.immediate = number,
		.invalidate_key = end->other.gift_key,
	};
	struct rbx_sim_op *op = op_at(end, end->posted + chain->count);

	if (kind == RBX_SIM_TEXT_SENT_INVALIDATE)
		operation.flags |= RBX_OPERATION_INVALIDATE;
	else if (kind != RBX_SIM_TEXT_SENT)
		operation.flags |= RBX_OPERATION_IMMEDIATE;
	stream->kinds[number] = (uint8_t)kind;
	length = rbx_sim_text_make(op->text, end->connection, end->side, kind,
				   number);
	add(end, chain, OP_MESSAGE, number, &operation, length);
}

static void add_scratch(struct rbx_sim_end *end, struct chain *chain)
{
	uint32_t number = ++end->scratches, length;
	struct rbx_sim_op *op = op_at(end, end->posted + chain->count);
	struct rbx_operation operation = {
		.kind = RBX_OPERATION_WRITE,
		.flags = RBX_OPERATION_SILENT,
		.key = end->other.exported_key,
		.address = there(end,
				 end->exported->scratch[number %
							RBX_SIM_WINDOWS]),
	};

	length = rbx_sim_text_make(op->text, end->connection, end->side,
				   RBX_SIM_TEXT_SCRATCH, number);
	add(end, chain, OP_SCRATCH_WRITE, number, &operation, length);
	operation.kind = RBX_OPERATION_READ;
	operation.flags = end->options.paced ? RBX_OPERATION_FENCE : 0;
	add(end, chain, OP_SCRATCH_READ, number, &operation, length);
}

static void add_atomic(struct rbx_sim_end *end, struct chain *chain)
{
	uint32_t word = rbx_random_below(&end->random, 2);
	uint32_t number = ++rbx_sim_end_stream(end)->atomics_said[word];
	const struct rbx_operation operation = {
		.kind = word ? RBX_OPERATION_COMPARE_SWAP :
			       RBX_OPERATION_FETCH_ADD,
		.key = end->other.exported_key,
		.address = there(end, &end->exported->words[word]),
		.compare_add = word ? number - 1 : 1,
		.swap = number,
	};

	add(end, chain, OP_ATOMIC, number, &operation, 8);
}

static void add_gift(struct rbx_sim_end *end, struct chain *chain, bool must_fail)
{
	const struct rbx_operation operation = {
		.kind = RBX_OPERATION_WRITE,
		.key = end->other.gift_key,
		.address = end->other.gift,
	};

	add(end, chain, OP_GIFT, 0, &operation, 64)->must_fail = must_fail;
}

/* The state before a chain. What is received meanwhile belongs to the other end. */
struct place {
	uint32_t said, atomics_said[2];
};

static struct place place_of(const struct rbx_sim_end *end)
{
	const struct rbx_sim_stream *stream = rbx_sim_end_stream(end);

	return (struct place){ stream->said,
			       { stream->atomics_said[0],
				 stream->atomics_said[1] } };
}

/* What the endpoint did not take was never sent. */
static void go_back(struct rbx_sim_end *end, const struct place *before)
{
	struct rbx_sim_stream *stream = rbx_sim_end_stream(end);

	stream->said = before->said;
	stream->atomics_said[0] = before->atomics_said[0];
	stream->atomics_said[1] = before->atomics_said[1];
}

static void post(struct rbx_sim_end *end, const struct chain *chain,
		 const struct place *before)
{
	uint32_t depth = rbx_endpoint_send_depth(end->endpoint);
	int err = rbx_endpoint_post(end->endpoint, chain->operations,
				    chain->count);

	if (err == -EAGAIN) {
		go_back(end, before);
		end->full_since_ns = end->full_since_ns ?: rbx_sim_now();
		if (rbx_sim_now() - end->full_since_ns > ROOM_NS)
			rbx_sim_fail("liveness", "connection %u: there is no room, for ever",
				     end->connection);
		return;
	}
	end->full_since_ns = 0;
	end->posted += chain->count;
	if (err == -EIO)
		end->is_over = end->is_cut_short = true;
	else if (err)
		rbx_sim_fail("start", "post: %s", rbx_last_error());
	else if (!end->options.paced)
		while (end->posted - end->first > depth)
			oldest_ended(end);
}

static void add_any(struct rbx_sim_end *end, struct chain *chain, bool has_two)
{
	struct rbx_sim_stream *stream = rbx_sim_end_stream(end);
	uint32_t draw = rbx_random_below(&end->random, 8);

	if (draw == 0 && has_two)
		add_scratch(end, chain);
	else if (draw == 1)
		add_atomic(end, chain);
	else if (draw == 2)
		add_gift(end, chain, false);
	else
		add_message(end, chain,
			    end->says_last &&
				    stream->said + 1 == end->messages_most);
}

void rbx_sim_ops_post(struct rbx_sim_end *end)
{
	uint32_t depth = rbx_endpoint_send_depth(end->endpoint);
	const struct rbx_sim_stream *stream = rbx_sim_end_stream(end);
	struct place before = place_of(end);
	struct chain chain = { .count = 0 };
	uint32_t wanted = 1 + rbx_random_below(&end->random,
					       RBX_MIN(depth, RBX_SIM_CHAIN));

	/* The oldest has not ended, and many later ones have. */
	if (end->posted - end->first > RBX_SIM_OPS - RBX_SIM_CHAIN)
		return;
	while (chain.count < wanted && stream->said < end->messages_most)
		add_any(end, &chain, wanted - chain.count >= 2);
	if (chain.count != 0)
		post(end, &chain, &before);
}

void rbx_sim_ops_post_gift(struct rbx_sim_end *end, bool must_fail)
{
	struct place before = place_of(end);
	struct chain chain = { .count = 0 };

	add_gift(end, &chain, must_fail);
	post(end, &chain, &before);
}
