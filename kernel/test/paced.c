/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * paced.c - tests of paced endpoints: data and order, and that each operation ends once,
 * whatever happens to the connection meanwhile.
 */
#include <linux/irq_work.h>

#include "kernel/test/pair.h"

#define PIECE_BYTES 256u
#define WRITES (PAIR_DEPTH - 4)
#define WAITING 10u

static int connect_paced(struct pair *pair)
{
	pair->options.paced = true;
	return pair_connect(pair);
}

static struct rbx_operation write_to(const struct rbx_region_key *key, u32 offset)
{
	return (struct rbx_operation){
		.kind = RBX_OPERATION_WRITE,
		.key = key->key,
		.address = key->address + offset,
	};
}

/* Neighbours are merged. */
int test_paced_neighbours(struct pair *pair)
{
	struct end *near = &pair->near;
	bool is_told[WRITES] = { false };
	struct rbx_completion completion;
	struct rbx_region_key key;
	struct rbx_region *region;
	u32 i;

	CHECK(!connect_paced(pair));
	CHECK(!export(&pair->far, RBX_REGION_WRITE, &region, &key));
	fill(near, 0, WRITES * PIECE_BYTES, 3);
	for (i = 0; i < WRITES; i++) {
		struct rbx_operation write = write_to(&key, i * PIECE_BYTES);

		CHECK(!post(near, &write, i * PIECE_BYTES, PIECE_BYTES));
	}
	for (i = 0; i < WRITES; i++) {
		u32 index;

		CHECK(!next(near, &completion) && !completion.status);
		index = (u32)((u8 *)completion.user - near->memory) / PIECE_BYTES;
		CHECK(index < WRITES && !is_told[index]);
		is_told[index] = true;
	}
	CHECK(is_filled(&pair->far, 0, WRITES * PIECE_BYTES, 3));
	CHECK(!end_told(near));
	return 0;
}

/* A message behind a fence comes when the data are there; the next one comes after it. */
int test_paced_fence(struct pair *pair)
{
	struct end *near = &pair->near, *far = &pair->far;
	const struct rbx_operation fence = { .flags = RBX_OPERATION_FENCE };
	const struct rbx_operation last = { 0 };
	struct rbx_completion completion;
	struct rbx_region_key key;
	struct rbx_region *region;
	u32 round, i;

	CHECK(!connect_paced(pair));
	CHECK(!export(far, RBX_REGION_WRITE, &region, &key));
	for (round = 0; round < 50; round++) {
		struct rbx_operation write = write_to(&key, 0);

		fill(near, 0, 8192, (u8)round);
		CHECK(!post_receive(far, 8192, 64));
		CHECK(!post_receive(far, 8192 + 64, 64));
		CHECK(!post(near, &write, 0, 8192));
		CHECK(!post(near, &fence, 1, 64));
		CHECK(!post(near, &last, 2, 64));
		CHECK(!next(far, &completion) && !completion.status);
		CHECK(completion.user == &far->memory[8192]);
		CHECK(is_filled(far, 0, 8192, (u8)round));
		CHECK(is_filled(far, 8192, 64, (u8)(round + 1)));
		CHECK(!next(far, &completion) && !completion.status);
		CHECK(is_filled(far, 8192 + 64, 64, (u8)(round + 2)));
		for (i = 0; i < 3; i++)
			CHECK(!next(near, &completion) && !completion.status &&
			      completion.user == &near->memory[i]);
	}
	return 0;
}

/* ---- The end --------------------------------------------------------------------------*/

/* Posts a message that is not received, and behind it operations that wait in the
 * channel: ordered ones, an export and plain WRITEs. */
static int wait_in_channel(struct pair *pair, struct rbx_region **region)
{
	const struct rbx_operation send = { 0 };
	const struct rbx_operation fence = { .flags = RBX_OPERATION_FENCE };
	struct rbx_operation begin = { .kind = RBX_OPERATION_EXPORT };
	const struct rbx_region_key nowhere = { 0 };
	struct end *near = &pair->near;
	u32 i;

	CHECK(!connect_paced(pair));
	CHECK(!rbx_region_take(near->endpoint, &near->sg, 1, RBX_REGION_READ,
			       region));
	begin.region = *region;
	CHECK(!post(near, &send, 0, 8));
	CHECK(!post(near, &fence, 1, 8));
	CHECK(!post(near, &begin, 2, 0));
	for (i = 3; i < WAITING; i++) {
		struct rbx_operation write = write_to(&nowhere, 0);

		CHECK(!post(near, i % 2 ? &write : &send, i, 8));
	}
	return 0;
}

/* Each ends once and with an error, in order if it has one. */
static int all_fail(struct end *end)
{
	struct rbx_completion completion;
	u32 i, mask = 0, last = 0;

	for (i = 0; i < WAITING; i++) {
		u32 index;

		CHECK(!next(end, &completion) && completion.status);
		index = (u32)((u8 *)completion.user - end->memory);
		CHECK(index < WAITING && !(mask & 1u << index));
		mask |= 1u << index;
		if (index > 2 && index % 2)
			continue; /* a plain WRITE */
		CHECK(index >= last);
		last = index;
	}
	CHECK(!end_told(end));
	return 0;
}

static void close_again(struct end *end, const struct rbx_completion *completion)
{
	end->hook_status = rbx_endpoint_close(completion->endpoint);
}

/* The thread that closes also reports. */
int test_paced_close_while_waiting(struct pair *pair)
{
	struct rbx_region *region;

	CHECK(!wait_in_channel(pair, &region));
	pair->near.hook = close_again;
	CHECK(!rbx_endpoint_close(pair->near.endpoint));
	pair->near.endpoint = NULL;
	CHECK(pair->near.hook_status == -EDEADLK);
	return all_fail(&pair->near);
}

int test_paced_peer_closes_while_waiting(struct pair *pair)
{
	struct rbx_region *region;

	CHECK(!wait_in_channel(pair, &region));
	CHECK(!rbx_endpoint_close(pair->far.endpoint));
	pair->far.endpoint = NULL;
	CHECK(!all_fail(&pair->near));
	CHECK(!rbx_region_release(region));
	return 0;
}

/* What is posted then is refused, in order. What was exported is released. */
int test_paced_disconnected(struct pair *pair)
{
	struct rbx_operation end_export = { .kind = RBX_OPERATION_END_EXPORT };
	const struct rbx_operation send = { 0 };
	struct rbx_completion completion;
	struct end *near = &pair->near;
	struct rbx_region *region;
	u32 round, i;

	CHECK(!wait_in_channel(pair, &region));
	rbx_endpoint_disconnect(near->endpoint);
	CHECK(!all_fail(near));
	for (round = 0; round < 20; round++) {
		for (i = 0; i < PAIR_DEPTH; i++)
			CHECK(!post(near, &send, i, 8));
		for (i = 0; i < PAIR_DEPTH; i++) {
			CHECK(!next(near, &completion));
			CHECK(completion.status == -EHOSTUNREACH);
			CHECK(completion.user == &near->memory[i]);
		}
	}
	end_export.region = region;
	CHECK(post_and_wait(near, &end_export, 0, 0) == -EHOSTUNREACH);
	CHECK(!rbx_region_release(region));
	return 0;
}

/* ---- In an interrupt -----------------------------------------------------------*/

struct interrupt {
	struct irq_work work;
	struct end *end;
	struct rbx_operation write;
	u32 posted_count, failed_count;
};

static void post_in_interrupt(struct irq_work *work)
{
	struct interrupt *interrupt = container_of(work, struct interrupt, work);

	switch (post(interrupt->end, &interrupt->write, 0, PIECE_BYTES)) {
	case 0:
		interrupt->posted_count++;
		break;
	case -EAGAIN:
		break;
	default:
		interrupt->failed_count++;
	}
}

/* A thread posts as well. The callbacks of both ends run meanwhile. */
int test_paced_in_interrupt(struct pair *pair)
{
	struct interrupt interrupt = { .end = &pair->near };
	struct rbx_completion completion;
	struct rbx_operation write;
	struct rbx_region_key key;
	struct rbx_region *region;
	u32 i, posted_count = 0;

	CHECK(!connect_paced(pair));
	CHECK(!export(&pair->far, RBX_REGION_WRITE, &region, &key));
	fill(&pair->near, 0, PAIR_MEMORY_BYTES, 9);
	write = write_to(&key, PIECE_BYTES);
	interrupt.write = write_to(&key, 0);
	init_irq_work(&interrupt.work, post_in_interrupt);
	for (i = 0; i < 2000; i++) {
		irq_work_queue(&interrupt.work);
		if (!post(&pair->near, &write, PIECE_BYTES, PIECE_BYTES))
			posted_count++;
		irq_work_sync(&interrupt.work);
		while (end_told(&pair->near) > PAIR_DEPTH)
			CHECK(!next(&pair->near, &completion) && !completion.status);
	}
	CHECK(!interrupt.failed_count && interrupt.posted_count && posted_count);
	while (pair->near.taken_count < interrupt.posted_count + posted_count)
		CHECK(!next(&pair->near, &completion) && !completion.status);
	CHECK(!end_told(&pair->near));
	CHECK(is_filled(&pair->far, 0, 2 * PIECE_BYTES, 9));
	return 0;
}
