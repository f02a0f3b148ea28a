/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * operations_test.c - what operations do, byte by byte: to the memory of the
 * other side, to its receives, and to what completes; alone and in chains.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/endpoints.h"

#define KIB 1024u

static void fill(uint8_t *bytes, size_t length, uint32_t seed)
{
	for (size_t i = 0; i < length; i++) {
		seed = seed * 1664525u + 1013904223u;
		bytes[i] = (uint8_t)(seed >> 24);
	}
}

/* ---- Messages -------------------------------------------------------------------*/

static void message_fills_a_receive_list(void **state)
{
	struct endpoints e;
	struct rbx_segment to[3], from[2];
	struct rbx_receive receive = { to, 3, (void *)7 };
	struct rbx_operation send = { .kind = RBX_OPERATION_SEND,
				      .segments = from,
				      .segments_count = 2,
				      .user = (void *)9 };
	struct rbx_completion completion;

	(void)state;
	endpoints_open(&e);
	fill(e.a.memory, 8 * KIB, 1);
	to[0] = segment_of(&e.b, 0, 10);
	to[1] = segment_of(&e.b, 4 * KIB, 3000);
	to[2] = segment_of(&e.b, 16 * KIB, 5000);
	from[0] = segment_of(&e.a, 0, 1);
	from[1] = segment_of(&e.a, 1, 3999);
	assert_int_equal(rbx_endpoint_receive(e.b.endpoint, &receive, 1), 0);
	assert_int_equal(rbx_endpoint_post(e.a.endpoint, &send, 1), 0);
	completion = expect(&e.b, RBX_COMPLETION_RECEIVED, 7, 0);
	assert_int_equal(completion.length_bytes, 4000);
	assert_int_equal(completion.has_immediate, 0);
	assert_memory_equal(e.b.memory, e.a.memory, 10);
	assert_memory_equal(e.b.memory + 4 * KIB, e.a.memory + 10, 3000);
	assert_memory_equal(e.b.memory + 16 * KIB, e.a.memory + 3010, 990);
	assert_int_equal(e.b.memory[16 * KIB + 990], 0);
	expect(&e.a, RBX_COMPLETION_POSTED, 9, 0);
	endpoints_close(&e);
}

static void message_of_no_bytes_with_an_immediate(void **state)
{
	struct endpoints e;
	struct rbx_receive receive = { NULL, 0, (void *)1 };
	struct rbx_operation send = { .kind = RBX_OPERATION_SEND,
				      .flags = RBX_OPERATION_IMMEDIATE,
				      .immediate = 0x01020304,
				      .user = (void *)2 };
	struct rbx_completion completion;

	(void)state;
	endpoints_open(&e);
	if (!e.a.limits.has_immediate)
		send.flags = 0;
	assert_int_equal(rbx_endpoint_receive(e.b.endpoint, &receive, 1), 0);
	assert_int_equal(rbx_endpoint_post(e.a.endpoint, &send, 1), 0);
	completion = expect(&e.b, RBX_COMPLETION_RECEIVED, 1, 0);
	assert_int_equal(completion.length_bytes, 0);
	assert_int_equal(completion.has_immediate, e.a.limits.has_immediate);
	if (completion.has_immediate)
		assert_int_equal(completion.immediate, 0x01020304);
	expect(&e.a, RBX_COMPLETION_POSTED, 2, 0);
	endpoints_close(&e);
}

/* A message waits for a receive: about a second, by the page. */
static void message_waits_for_a_receive(void **state)
{
	struct endpoints e;
	struct rbx_completion none;

	(void)state;
	endpoints_open(&e);
	fill(e.a.memory, 64, 5);
	assert_int_equal(post_one(&e.a, (struct rbx_operation){
				 .kind = RBX_OPERATION_SEND, .user = (void *)3 }, 0, 64),
			 0);
	assert_int_equal(rbx_queue_poll(e.a.queue, &none, 1, 50), 0);
	receive_at(&e.b, 0, 64, 4);
	expect(&e.b, RBX_COMPLETION_RECEIVED, 4, 0);
	expect(&e.a, RBX_COMPLETION_POSTED, 3, 0);
	assert_memory_equal(e.b.memory, e.a.memory, 64);
	endpoints_close(&e);
}

/* ---- Memory of the other side -----------------------------------------------------*/

static void write_and_read_move_bytes(void **state)
{
	struct endpoints e;

	(void)state;
	endpoints_open(&e);
	assert_int_equal(e.b.key.length_bytes, MEMORY_BYTES);
	fill(e.a.memory, 100 * KIB, 11);
	assert_int_equal(post_one(&e.a, operation_at(&e.b, RBX_OPERATION_WRITE, 5), 0,
				  100 * KIB), 0);
	expect(&e.a, RBX_COMPLETION_POSTED, RBX_OPERATION_WRITE + 1, 0);
	assert_memory_equal(e.b.memory + 5, e.a.memory, 100 * KIB);
	assert_int_equal(e.b.memory[4] | e.b.memory[100 * KIB + 5], 0);
	assert_int_equal(post_one(&e.a, operation_at(&e.b, RBX_OPERATION_READ, 6),
				  512 * KIB, 99 * KIB), 0);
	expect(&e.a, RBX_COMPLETION_POSTED, RBX_OPERATION_READ + 1, 0);
	assert_memory_equal(e.a.memory + 512 * KIB, e.a.memory + 1, 99 * KIB);
	/* And the other way. */
	assert_int_equal(post_one(&e.b, operation_at(&e.a, RBX_OPERATION_READ, 0),
				  512 * KIB, 8), 0);
	expect(&e.b, RBX_COMPLETION_POSTED, RBX_OPERATION_READ + 1, 0);
	assert_memory_equal(e.b.memory + 512 * KIB, e.a.memory, 8);
	endpoints_close(&e);
}

static void write_with_an_immediate_uses_a_receive_up(void **state)
{
	struct endpoints e;
	struct rbx_operation write;
	struct rbx_completion completion;

	(void)state;
	endpoints_open(&e);
	if (!e.a.limits.has_immediate) {
		endpoints_close(&e);
		skip();
	}
	fill(e.a.memory, 4 * KIB, 21);
	receive_at(&e.b, 64 * KIB, 100, 31);
	write = operation_at(&e.b, RBX_OPERATION_WRITE, 0);
	write.flags = RBX_OPERATION_IMMEDIATE;
	write.immediate = 77;
	assert_int_equal(post_one(&e.a, write, 0, 4 * KIB), 0);
	completion = expect(&e.b, RBX_COMPLETION_WRITTEN, 31, 0);
	assert_int_equal(completion.immediate, 77);
	assert_int_equal(completion.length_bytes, 4 * KIB);
	assert_memory_equal(e.b.memory, e.a.memory, 4 * KIB);
	assert_int_equal(e.b.memory[64 * KIB], 0);
	expect(&e.a, RBX_COMPLETION_POSTED, RBX_OPERATION_WRITE + 1, 0);
	endpoints_close(&e);
}

static void atomics_bring_what_was_there(void **state)
{
	struct endpoints e;
	struct rbx_operation operation;
	uint64_t *there, *here;

	(void)state;
	endpoints_open(&e);
	there = (uint64_t *)(void *)e.b.memory;
	here = (uint64_t *)(void *)e.a.memory;
	operation = operation_at(&e.b, RBX_OPERATION_FETCH_ADD, 8);
	operation.compare_add = 5;
	if (!e.a.limits.has_atomics) {
		assert_int_equal(post_one(&e.a, operation, 0, 8), -EOPNOTSUPP);
		endpoints_close(&e);
		return;
	}
	there[1] = 40;
	assert_int_equal(post_one(&e.a, operation, 0, 8), 0);
	expect(&e.a, RBX_COMPLETION_POSTED, RBX_OPERATION_FETCH_ADD + 1, 0);
	assert_int_equal(here[0], 40);
	assert_int_equal(there[1], 45);
	operation = operation_at(&e.b, RBX_OPERATION_COMPARE_SWAP, 8);
	operation.compare_add = 44;
	operation.swap = 1;
	assert_int_equal(post_one(&e.a, operation, 0, 8), 0);
	expect(&e.a, RBX_COMPLETION_POSTED, RBX_OPERATION_COMPARE_SWAP + 1, 0);
	assert_int_equal(here[0], 45);
	assert_int_equal(there[1], 45);
	operation.compare_add = 45;
	assert_int_equal(post_one(&e.a, operation, 0, 8), 0);
	expect(&e.a, RBX_COMPLETION_POSTED, RBX_OPERATION_COMPARE_SWAP + 1, 0);
	assert_int_equal(there[1], 1);
	operation.address++;
	assert_int_equal(post_one(&e.a, operation, 0, 8), -EINVAL);
	endpoints_close(&e);
}

/* ---- Chains -----------------------------------------------------------------------*/

/* 50 operations of all kinds are one call, and one completion. */
static void chain_of_silent_operations_completes_once(void **state)
{
	struct rbx_operation operations[50];
	struct rbx_segment segments[50];
	struct rbx_completion none;
	struct endpoints e;

	(void)state;
	endpoints_open(&e);
	fill(e.a.memory, 50 * KIB, 41);
	receive_at(&e.b, 512 * KIB, KIB, 1);
	for (uint32_t round = 0; round < 20; round++) {
		for (uint32_t i = 0; i < 50; i++) {
			operations[i] = operation_at(&e.b, RBX_OPERATION_WRITE,
						     (size_t)i * KIB);
			operations[i].flags = i < 49 ? RBX_OPERATION_SILENT : 0;
			operations[i].segments = &segments[i];
			operations[i].segments_count = 1;
			segments[i] = segment_of(&e.a, (size_t)(49 - i) * KIB, KIB);
		}
		operations[49] = (struct rbx_operation){
			.kind = RBX_OPERATION_SEND,
			.segments = &segments[49],
			.segments_count = 1,
			.user = (void *)(uintptr_t)(100 + round),
		};
		assert_int_equal(rbx_endpoint_post(e.a.endpoint, operations, 50), 0);
		/* Whatever was before the message is there when that is. */
		expect(&e.b, RBX_COMPLETION_RECEIVED, 1 + round, 0);
		for (uint32_t i = 0; i < 49; i++)
			assert_memory_equal(e.b.memory + i * KIB,
					    e.a.memory + (49 - i) * KIB, KIB);
		expect(&e.a, RBX_COMPLETION_POSTED, 100 + round, 0);
		assert_int_equal(rbx_queue_poll(e.a.queue, &none, 1, 0), 0);
		memset(e.b.memory, 0, 50 * KIB);
		receive_at(&e.b, 512 * KIB, KIB, 2 + round);
	}
	endpoints_close(&e);
}

static void inline_data_is_copied_by_the_post(void **state)
{
	struct rbx_operation write;
	struct rbx_segment segment;
	uint8_t word[32];
	struct endpoints e;

	(void)state;
	endpoint_options.inline_bytes = 32;
	endpoints_open(&e);
	memset(word, 0x5a, sizeof(word));
	segment = (struct rbx_segment){ word, sizeof(word), NULL };
	write = operation_at(&e.b, RBX_OPERATION_WRITE, 0);
	write.flags = RBX_OPERATION_INLINE;
	write.segments = &segment;
	write.segments_count = 1;
	assert_int_equal(rbx_endpoint_post(e.a.endpoint, &write, 1), 0);
	memset(word, 0, sizeof(word));
	expect(&e.a, RBX_COMPLETION_POSTED, RBX_OPERATION_WRITE + 1, 0);
	for (int i = 0; i < 32; i++)
		assert_int_equal(e.b.memory[i], 0x5a);
	endpoints_close(&e);
}

/* ---- What is refused --------------------------------------------------------------*/

static void operations_that_cannot_be_leave_no_trace(void **state)
{
	struct rbx_operation chain[2], bad;
	struct rbx_segment segments[5];
	struct rbx_completion none;
	struct endpoints e;

	(void)state;
	endpoints_open(&e);
	segments[0] = segment_of(&e.a, 0, 8);
	for (int i = 1; i < 5; i++)
		segments[i] = segments[0];
	chain[0] = operation_at(&e.b, RBX_OPERATION_WRITE, 0);
	chain[0].segments = segments;
	chain[0].segments_count = 1;
	e.a.memory[0] = 1;
	for (int i = 0; i < 7; i++) {
		int expected = -EINVAL;

		bad = chain[0];
		if (i == 0)
			bad.kind = (enum rbx_operation_kind)9;
		else if (i == 1)
			bad.flags = 1u << 20;
		else if (i == 2)
			bad.flags = RBX_OPERATION_INVALIDATE;
		else if (i == 3)
			bad.segments_count = 5;
		else if (i == 4)
			bad.segments = NULL;
		else if (i == 5)
			bad.flags = RBX_OPERATION_INLINE,
			segments[0].length_bytes = 4096;
		else
			segments[0] = segment_of(&e.a, MEMORY_BYTES - 4, 8),
			expected = -EFAULT;
		chain[1] = bad;
		assert_int_equal(rbx_endpoint_post(e.a.endpoint, chain, 2), expected);
		segments[0] = segment_of(&e.a, 0, 8);
	}
	assert_int_equal(rbx_queue_poll(e.a.queue, &none, 1, 20), 0);
	assert_int_equal(e.b.memory[0], 0);
	/* It is as good as new. */
	assert_int_equal(rbx_endpoint_post(e.a.endpoint, chain, 1), 0);
	expect(&e.a, RBX_COMPLETION_POSTED, RBX_OPERATION_WRITE + 1, 0);
	assert_int_equal(e.b.memory[0], 1);
	endpoints_close(&e);
}

/* Of memory that nobody touches. */
static void longest_message_is_as_long_as_the_device_says(void **state)
{
	struct rbx_segment segments[2] = { { .length_bytes = 0 } };
	struct rbx_receive receive = { segments, 2, NULL };
	struct endpoints e;

	(void)state;
	endpoints_open(&e);
	if (!e.a.limits.needs_regions) {
		segments[0].addr = segments[1].addr = e.a.of_device;
		segments[0].length_bytes = e.a.limits.message_bytes_max;
		assert_int_equal(rbx_endpoint_receive(e.a.endpoint, &receive, 1), 0);
		segments[1].length_bytes = 1;
		assert_int_equal(rbx_endpoint_receive(e.a.endpoint, &receive, 1),
				 -EINVAL);
	}
	endpoints_close(&e);
}

static void error_says_what_is_wrong_with_an_operation(void **state)
{
	static const struct {
		struct rbx_operation operation;
		const char *says[2];
	} wrong[] = {
		{ { .kind = RBX_OPERATION_READ, .flags = RBX_OPERATION_IMMEDIATE },
		  { "RBX_OPERATION_IMMEDIATE", "READ" } },
		{ { .kind = RBX_OPERATION_FETCH_ADD, .flags = RBX_OPERATION_INLINE },
		  { "RBX_OPERATION_INLINE", "FETCH_ADD" } },
		{ { .flags = RBX_OPERATION_IMMEDIATE | RBX_OPERATION_INVALIDATE },
		  { "IMMEDIATE", "INVALIDATE" } },
		{ { .flags = RBX_OPERATION_URGENT }, { "URGENT", "paced" } },
		{ { .flags = 1u << 20 }, { "no flag", "0x100000" } },
		{ { .segments_count = 1 }, { "segments_count is 1", "missing" } },
	};
	struct endpoints e;

	(void)state;
	endpoints_open(&e);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(rbx_endpoint_post(e.a.endpoint, &wrong[i].operation, 1),
				 -EINVAL);
		for (int j = 0; j < 2; j++)
			assert_non_null(strstr(rbx_last_error(), wrong[i].says[j]));
	}
	endpoints_close(&e);
}

static void no_more_is_posted_than_there_is_room_for(void **state)
{
	struct rbx_receive receives[65];
	struct rbx_segment segment;
	struct endpoints e;

	(void)state;
	endpoints_open(&e);
	segment = segment_of(&e.a, 0, 64);
	for (int i = 0; i < 65; i++)
		receives[i] = (struct rbx_receive){ &segment, 1, NULL };
	assert_int_equal(rbx_endpoint_receive(e.a.endpoint, receives, 65), -EAGAIN);
	assert_int_equal(rbx_endpoint_receive(e.a.endpoint, receives, 64), 0);
	assert_int_equal(rbx_endpoint_receive(e.a.endpoint, receives, 1), -EAGAIN);
	endpoints_close(&e);
}

static void list_longer_than_the_depth_is_not_looked_at(void **state)
{
	const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct endpoints e;
	void *no_memory;

	(void)state;
	no_memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(no_memory != MAP_FAILED);
	for (int is_paced = 0; is_paced <= 1; is_paced++) {
		endpoint_options.paced = (uint8_t)is_paced;
		endpoints_open(&e);
		assert_int_equal(rbx_endpoint_receive(e.a.endpoint, no_memory, 65),
				 -EAGAIN);
		assert_int_equal(rbx_endpoint_post(e.a.endpoint, no_memory, 65),
				 -EAGAIN);
		assert_int_equal(rbx_endpoint_post(e.a.endpoint, no_memory, UINT32_MAX),
				 -EAGAIN);
		endpoints_close(&e);
	}
	endpoint_options.paced = 0;
	munmap(no_memory, bytes);
}

static void memory_without_a_region_is_taken_where_the_device_can(void **state)
{
	struct rbx_operation write;
	struct rbx_segment segment;
	uint8_t bytes[64] = { 9 };
	struct endpoints e;

	(void)state;
	endpoints_open(&e);
	segment = (struct rbx_segment){ bytes, sizeof(bytes), NULL };
	write = operation_at(&e.b, RBX_OPERATION_WRITE, 0);
	write.segments = &segment;
	write.segments_count = 1;
	if (e.a.limits.needs_regions) {
		assert_int_equal(rbx_endpoint_post(e.a.endpoint, &write, 1), -EINVAL);
		assert_non_null(strstr(rbx_last_error(), "region"));
	} else {
		assert_int_equal(rbx_endpoint_post(e.a.endpoint, &write, 1), 0);
		expect(&e.a, RBX_COMPLETION_POSTED, RBX_OPERATION_WRITE + 1, 0);
		assert_int_equal(e.b.memory[0], 9);
	}
	endpoints_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_fills_a_receive_list),
		cmocka_unit_test(message_of_no_bytes_with_an_immediate),
		cmocka_unit_test(message_waits_for_a_receive),
		cmocka_unit_test(write_and_read_move_bytes),
		cmocka_unit_test(write_with_an_immediate_uses_a_receive_up),
		cmocka_unit_test(atomics_bring_what_was_there),
		cmocka_unit_test(chain_of_silent_operations_completes_once),
		cmocka_unit_test(inline_data_is_copied_by_the_post),
		cmocka_unit_test(operations_that_cannot_be_leave_no_trace),
		cmocka_unit_test(longest_message_is_as_long_as_the_device_says),
		cmocka_unit_test(error_says_what_is_wrong_with_an_operation),
		cmocka_unit_test(no_more_is_posted_than_there_is_room_for),
		cmocka_unit_test(list_longer_than_the_depth_is_not_looked_at),
		cmocka_unit_test(memory_without_a_region_is_taken_where_the_device_can),
	};

	return endpoints_run(tests, sizeof(tests) / sizeof(tests[0]));
}
