/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* operations.c - tests of each operation, and of the data. */
#include "kernel/test/pair.h"

static bool is_received(const struct rbx_completion *completion, u32 length)
{
	return !completion->status &&
	       completion->kind == RBX_COMPLETION_RECEIVED &&
	       completion->length_bytes == length;
}

int test_send(struct pair *pair)
{
	struct end *near = &pair->near, *far = &pair->far;
	struct rbx_segment from[] = { { 0, 100 }, { 0, 0 }, { 0, 3000 }, { 0, 1 } };
	struct rbx_segment to[] = { { 0, 1000 }, { 0, 5000 } };
	struct rbx_operation send = {
		.flags = RBX_OPERATION_IMMEDIATE,
		.segments = from,
		.segments_count = ARRAY_SIZE(from),
		.immediate = 0x12345678,
		.user = pair,
	};
	struct rbx_receive receive = { to, ARRAY_SIZE(to), far };
	struct rbx_completion completion;

	CHECK(!pair_connect(pair));
	from[0].address = near->dma;
	from[2].address = near->dma + 200;
	from[3].address = near->dma + 5000;
	to[0].address = far->dma;
	to[1].address = far->dma + 8192;
	fill(near, 0, 100, 1);
	fill(near, 200, 3000, 77);
	fill(near, 5000, 1, 200);
	CHECK(!rbx_endpoint_receive(far->endpoint, &receive, 1));
	CHECK(!rbx_endpoint_post(near->endpoint, &send, 1));
	CHECK(!next(near, &completion));
	CHECK(!completion.status && completion.user == pair);
	CHECK(completion.kind == RBX_COMPLETION_POSTED);
	CHECK(completion.endpoint == near->endpoint);
	CHECK(!next(far, &completion));
	CHECK(is_received(&completion, 3101));
	CHECK(completion.user == far && completion.has_immediate);
	CHECK(completion.immediate == 0x12345678 && !completion.has_invalidated);
	CHECK(is_filled(far, 0, 100, 1));
	CHECK(is_filled(far, 100, 900, 77));
	CHECK(is_filled(far, 8192, 2100, (77 + 900) & 0xff));
	CHECK(is_filled(far, 8192 + 2100, 1, 200));

	/* The other way: without an immediate, and with no bytes. */
	CHECK(!post_receive(near, 0, 0));
	CHECK(!post_and_wait(far, &(struct rbx_operation){ 0 }, 0, 0));
	CHECK(!next(near, &completion));
	CHECK(is_received(&completion, 0) && !completion.has_immediate);
	return 0;
}

int test_write_read(struct pair *pair)
{
	struct end *near = &pair->near, *far = &pair->far;
	struct rbx_operation write = {
		.kind = RBX_OPERATION_WRITE,
		.flags = RBX_OPERATION_IMMEDIATE,
		.immediate = 42,
	};
	struct rbx_operation read = { .kind = RBX_OPERATION_READ };
	struct rbx_completion completion;
	struct rbx_region_key key;
	struct rbx_region *region;

	CHECK(!pair_connect(pair));
	CHECK(!export(far, RBX_REGION_READ | RBX_REGION_WRITE, &region, &key));
	CHECK(key.length_bytes == PAIR_MEMORY_BYTES);
	fill(near, 0, 10000, 5);
	CHECK(!post_receive(far, 0, 0));
	write.key = read.key = key.key;
	write.address = key.address + 1000;
	CHECK(!post_and_wait(near, &write, 0, 10000));
	CHECK(!next(far, &completion));
	CHECK(!completion.status && completion.kind == RBX_COMPLETION_WRITTEN);
	CHECK(completion.has_immediate && completion.immediate == 42);
	CHECK(completion.length_bytes == 10000);
	CHECK(is_filled(far, 1000, 10000, 5));

	fill(far, 0, 9000, 91);
	read.address = key.address + 1;
	CHECK(!post_and_wait(near, &read, 6000, 8000));
	CHECK(is_filled(near, 6000, 8000, 92));
	CHECK(is_filled(near, 0, 6000, 5)); /* and nothing beside it */
	return 0;
}

static u64 word(const struct end *end, u32 offset)
{
	return *(const u64 *)&end->memory[offset];
}

int test_atomics(struct pair *pair)
{
	struct end *near = &pair->near, *far = &pair->far;
	struct rbx_operation swap = {
		.kind = RBX_OPERATION_COMPARE_SWAP,
		.compare_add = 7,
		.swap = 1000,
	};
	struct rbx_operation add = {
		.kind = RBX_OPERATION_FETCH_ADD,
		.compare_add = 5,
	};
	struct rbx_endpoint_limits limits;
	struct rbx_region_key key;
	struct rbx_region *region;

	rbx_endpoint_limits(near->domain, &limits);
	CHECK(limits.has_atomics); /* Soft-RoCE has them */
	CHECK(!pair_connect(pair));
	CHECK(!export(far, RBX_REGION_ATOMIC, &region, &key));
	*(u64 *)&far->memory[8] = 7;
	swap.key = add.key = key.key;
	swap.address = add.address = key.address + 8;
	CHECK(!post_and_wait(near, &swap, 0, 8));
	CHECK(word(near, 0) == 7 && word(far, 8) == 1000);
	CHECK(!post_and_wait(near, &swap, 0, 8)); /* it is not 7 any more */
	CHECK(word(near, 0) == 1000 && word(far, 8) == 1000);
	CHECK(!post_and_wait(near, &add, 0, 8));
	CHECK(word(near, 0) == 1000 && word(far, 8) == 1005);
	return 0;
}

/* A chain of mixed operations, with one completion for all of them. */
int test_chain(struct pair *pair)
{
	struct end *near = &pair->near, *far = &pair->far;
	struct rbx_segment key_at = { 0, sizeof(struct rbx_region_key) };
	struct rbx_operation tell[] = {
		{ .kind = RBX_OPERATION_EXPORT, .flags = RBX_OPERATION_SILENT },
		{ .kind = RBX_OPERATION_SEND,
		  .segments = &key_at,
		  .segments_count = 1 },
	};
	struct rbx_segment parts[] = { { 0, 512 }, { 0, 512 }, { 0, 1024 } };
	struct rbx_operation use[] = {
		{ .kind = RBX_OPERATION_WRITE, .flags = RBX_OPERATION_SILENT,
		  .segments = &parts[0], .segments_count = 1 },
		{ .kind = RBX_OPERATION_WRITE, .flags = RBX_OPERATION_SILENT,
		  .segments = &parts[1], .segments_count = 1 },
		{ .kind = RBX_OPERATION_READ, .flags = RBX_OPERATION_SILENT,
		  .segments = &parts[2], .segments_count = 1 },
		{ .kind = RBX_OPERATION_SEND, .flags = RBX_OPERATION_FENCE,
		  .user = pair },
	};
	struct rbx_completion completion;
	struct rbx_region_key key;
	u32 i;

	CHECK(!pair_connect(pair));
	CHECK(!rbx_region_take(far->endpoint, &far->sg, 1,
			       RBX_REGION_READ | RBX_REGION_WRITE,
			       &tell[0].region));
	rbx_region_key(tell[0].region, (struct rbx_region_key *)far->memory);
	key_at.address = far->dma;
	CHECK(!post_receive(near, 0, sizeof(key)));
	CHECK(!rbx_endpoint_post(far->endpoint, tell, ARRAY_SIZE(tell)));
	CHECK(!next(near, &completion));
	CHECK(is_received(&completion, sizeof(key)));
	memcpy(&key, near->memory, sizeof(key));

	CHECK(!post_receive(far, 0, 0));
	fill(near, 4096, 1024, 33);
	for (i = 0; i < 3; i++) {
		parts[i].address = near->dma + (i < 2 ? 4096 + 512 * i : 8192);
		use[i].key = key.key;
		use[i].address = key.address + 4096 + (i == 1 ? 512 : 0);
	}
	if (pair->options.paced) /* else it has no order with the WRITEs */
		use[2].flags |= RBX_OPERATION_FENCE;
	CHECK(!rbx_endpoint_post(near->endpoint, use, ARRAY_SIZE(use)));
	CHECK(!next(far, &completion)); /* of its own SEND, or of ours */
	CHECK(!completion.status);
	CHECK(!next(far, &completion));
	CHECK(!completion.status);
	CHECK(!next(near, &completion));
	CHECK(!completion.status && completion.user == pair);
	CHECK(is_filled(far, 4096, 1024, 33));
	CHECK(is_filled(near, 8192, 1024, 33));
	CHECK(!end_told(near) && !end_told(far));
	return 0;
}

int test_bad_posts(struct pair *pair)
{
	struct end *near = &pair->near, *far = &pair->far;
	static const struct rbx_operation many[PAIR_DEPTH + 1];
	struct rbx_operation two[2] = { 0 };
	struct rbx_segment segments[5] = { { 0, 4 } };
	const struct rbx_segment long_one = { 0, (256u << 10) + 1 };
	struct rbx_operation wrong;
	struct rbx_region *region;
	u32 i;

	CHECK(!pair_connect(pair));
#define REFUSED(...)                                                      \
	do {                                                              \
		wrong = (struct rbx_operation){ __VA_ARGS__ };            \
		two[1] = wrong;                                           \
		CHECK(rbx_endpoint_post(near->endpoint, two, 2) ==        \
		      -EINVAL);                                           \
	} while (0)
	REFUSED(.kind = (enum rbx_operation_kind)99);
	REFUSED(.flags = 2); /* inline, which exists only in user space */
	if (!pair->options.paced)
		REFUSED(.flags = RBX_OPERATION_URGENT);
	else
		REFUSED(.segments = &long_one, .segments_count = 1);
	REFUSED(.kind = RBX_OPERATION_READ, .flags = RBX_OPERATION_IMMEDIATE);
	REFUSED(.flags = RBX_OPERATION_IMMEDIATE | RBX_OPERATION_INVALIDATE);
	REFUSED(.segments = segments, .segments_count = 5);
	REFUSED(.segments_count = 1);
	REFUSED(.kind = RBX_OPERATION_FETCH_ADD, .segments = segments,
		.segments_count = 1);
	REFUSED(.kind = RBX_OPERATION_EXPORT);
	REFUSED(.kind = RBX_OPERATION_END_EXPORT);
#undef REFUSED
	CHECK(rbx_endpoint_post(near->endpoint, many, ARRAY_SIZE(many)) ==
	      -EAGAIN);
	/* The entries are not read. */
	two[0] = (struct rbx_operation){ .segments_count = 1 };
	CHECK(rbx_endpoint_post(near->endpoint, two, PAIR_DEPTH + 1) == -EAGAIN);
	CHECK(!end_told(near));

	/* If a chain is refused, a region that had moved for it moves back. */
	CHECK(!rbx_region_take(near->endpoint, &near->sg, 1, RBX_REGION_READ,
			       &region));
	two[0] = (struct rbx_operation){ .kind = RBX_OPERATION_EXPORT,
					 .region = region };
	two[1] = two[0]; /* the same region twice */
	CHECK(rbx_endpoint_post(near->endpoint, two, 2) == -EINVAL);
	CHECK(!post_and_wait(near, &two[0], 0, 0));

	/* And the connection is as before: every slot is free. */
	for (i = 0; i < PAIR_DEPTH; i++)
		CHECK(!post_receive(far, 0, 0));
	CHECK(post_receive(far, 0, 0) == -EAGAIN);
	CHECK(!rbx_endpoint_post(near->endpoint, many, PAIR_DEPTH));
	for (i = 0; i < PAIR_DEPTH; i++) {
		struct rbx_completion completion;

		CHECK(!next(near, &completion) && !completion.status);
		CHECK(!next(far, &completion) && !completion.status);
	}
	return 0;
}

int test_too_long(struct pair *pair)
{
	struct rbx_completion completion;

	CHECK(!pair_connect(pair));
	CHECK(!post_receive(&pair->far, 0, 100));
	CHECK(post_and_wait(&pair->near, &(struct rbx_operation){ 0 }, 0, 101));
	CHECK(!next(&pair->far, &completion));
	/* The specification says -EMSGSIZE; Soft-RoCE reports a bad operation. */
	CHECK(completion.status);
	return 0;
}
