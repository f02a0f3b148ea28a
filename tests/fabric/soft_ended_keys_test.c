/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_ended_keys_test.c - a key ends while a peer on this host is in the middle of
 * what it allowed: not a byte comes or goes by it after that.
 */
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "endpoint.h"
#include "tests/fabric/intruder.h"

#define PAGE 4096u

/* Half of a WRITE is there when its key is taken back. */
static void rest_of_a_write_is_not_placed_after_its_key(void **state)
{
	enum { HALF = 64 << 10 };
	struct intruder intruder;
	struct soft_frame answer;
	struct test_pair pair;
	uint8_t *half = malloc(HALF);
	uint8_t rest[SOFT_MAP_BYTES];
	struct soft_frame write;
	uint64_t deadline_ms;

	(void)state;
	assert_non_null(half);
	memset(half, 0x66, HALF);
	test_pair_open(&pair, NULL);
	intruder_come(&intruder, &pair, NULL);
	write = (struct soft_frame){
		.opcode = SOFT_WRITE,
		.sequence = intruder.peer.sequence,
		.length_bytes = 2 * HALF,
		.rkey = pair.target_mr->rkey,
		.remote_addr = (uintptr_t)pair.target_memory,
	};
	local_peer_send(&intruder.peer, &write, NULL);
	assert_int_equal(send(intruder.peer.fd, half, HALF, 0), HALF);
	deadline_ms = test_now_ms() + 30000;
	while (((volatile uint8_t *)pair.target)[HALF - 1] != 0x66)
		assert_true(test_now_ms() < deadline_ms);
	pair.ops->deregister_memory(pair.server_device, &pair.target_mr, 1);
	memset(pair.target, 0, TARGET_BYTES);
	send(intruder.peer.fd, half, HALF, MSG_NOSIGNAL);
	do {
		assert_true(local_peer_hear(&intruder.peer, &answer, rest,
					    sizeof(rest)));
	} while (answer.opcode == SOFT_ACK);
	assert_int_equal(answer.opcode, SOFT_ERROR);
	assert_int_equal(answer.status, SOFT_REFUSED_ACCESS);
	assert_int_equal(pair.target[0], 0);
	assert_int_equal(pair.target[HALF], 0);
	assert_int_equal(pair.target[2 * HALF - 1], 0);
	intruder_go(&intruder, &pair);
	test_pair_close(&pair);
	free(half);
}

struct stream {
	struct intruder *intruder;
	const struct test_pair *pair;
	uint32_t rkey;
};

/* A WRITE of the whole target, as fast as it is taken. */
static void *stream_run(void *argument)
{
	const struct stream *stream = argument;
	const struct soft_frame write = {
		.opcode = SOFT_WRITE,
		.sequence = stream->intruder->peer.sequence,
		.length_bytes = TARGET_BYTES,
		.rkey = stream->rkey,
		.remote_addr = (uintptr_t)stream->pair->target_memory,
	};
	void *payload = malloc(TARGET_BYTES);

	memset(payload, 0x66, TARGET_BYTES);
	local_peer_send(&stream->intruder->peer, &write, payload);
	free(payload);
	return NULL;
}

/* How far the stream has come, from a place that it has reached. */
static uint32_t stream_end(const struct test_pair *pair, uint32_t from)
{
	const volatile uint8_t *target = pair->target;

	while (from < TARGET_BYTES && target[from])
		from += 64;
	return from;
}

/* Once the key has ended no byte comes any more, not even of what was under way. */
static void end_of_a_key_waits_for_what_is_under_way(void **state)
{
	struct intruder intruder;
	struct stream stream = { .intruder = &intruder };
	struct test_pair pair;
	uint32_t round, from, end;
	pthread_t thread;

	(void)state;
	for (round = 0; round < 100; round++) {
		from = round * 16 * PAGE;
		test_pair_open(&pair, NULL);
		intruder_come(&intruder, &pair, NULL);
		stream.pair = &pair;
		stream.rkey = pair.target_mr->rkey;
		assert_int_equal(pthread_create(&thread, NULL, stream_run,
						&stream), 0);
		while (!((volatile uint8_t *)pair.target)[from])
			;
		pair.ops->deregister_memory(pair.server_device,
					    &pair.target_mr, 1);
		end = stream_end(&pair, from);
		pthread_join(thread, NULL);
		assert_int_equal(stream_end(&pair, from), end);
		intruder_go(&intruder, &pair);
		test_pair_close(&pair);
	}
}

/* READs are noted, and the socket is full, when their key is taken back: what
 * comes after that never shows what the memory holds by then. */
static void rest_of_a_read_is_not_sent_after_its_key(void **state)
{
	struct intruder intruder;
	struct test_pair pair;
	struct soft_frame read;
	uint8_t bytes[PAGE];
	ssize_t got;
	int j;

	(void)state;
	test_pair_open(&pair, NULL);
	intruder_come(&intruder, &pair, NULL);
	for (j = 0; j < 8; j++) {
		read = (struct soft_frame){
			.opcode = SOFT_READ,
			.sequence = intruder.peer.sequence++,
			.length_bytes = TARGET_BYTES,
			.rkey = pair.target_mr->rkey,
			.remote_addr = (uintptr_t)pair.target_memory,
		};
		local_peer_send(&intruder.peer, &read, NULL);
	}
	usleep(100000); /* the first of them is under way */
	pair.ops->deregister_memory(pair.server_device, &pair.target_mr, 1);
	memset(pair.target, 0x66, TARGET_BYTES);
	while ((got = recv(intruder.peer.fd, bytes, sizeof(bytes), 0)) > 0)
		assert_null(memchr(bytes, 0x66, (size_t)got));
	intruder_go(&intruder, &pair);
	test_pair_close(&pair);
}

/* A request of the intruder's, by a frame. */
static void intruder_asks(struct intruder *intruder, uint8_t opcode,
			  const struct rbx_mr *mr, uint64_t addr,
			  uint32_t length_bytes, const void *payload)
{
	const struct soft_frame request = {
		.opcode = opcode,
		.flags = SOFT_ACK_WANTED,
		.sequence = intruder->peer.sequence++,
		.length_bytes = length_bytes,
		.rkey = mr->rkey,
		.remote_addr = addr,
	};

	local_peer_send(&intruder->peer, &request, payload);
}

/* What came after a READ whose key has ended is done, and the peer waits to hear of it:
 * it hears of the READ first. */
static void refused_read_is_told_before_what_follows_it(void **state)
{
	uint8_t *bytes = malloc(TARGET_BYTES), word[64];
	struct rbx_mr_init init = {
		.length_bytes = TARGET_BYTES,
		.rights = RBX_REMOTE_READ,
		.memory_fd = -1,
	};
	struct intruder intruder;
	struct soft_frame answer;
	struct test_pair pair;
	uint64_t deadline_ms;
	struct rbx_mr *mr;
	uint32_t first;

	(void)state;
	assert_non_null(bytes);
	memset(word, 0x66, sizeof(word));
	test_pair_open(&pair, NULL);
	init.addr = pair.target_memory;
	assert_int_equal(pair.ops->register_memory(pair.server_device, &init,
						   1, &mr, NULL), 0);
	intruder_come(&intruder, &pair, NULL);
	first = intruder.peer.sequence;
	/* We do not listen, so that the first answer keeps the second back. */
	intruder_asks(&intruder, SOFT_READ, pair.target_mr,
		      (uintptr_t)pair.target_memory, TARGET_BYTES, NULL);
	intruder_asks(&intruder, SOFT_READ, mr, (uintptr_t)pair.target_memory,
		      PAGE, NULL);
	intruder_asks(&intruder, SOFT_WRITE, pair.target_mr,
		      (uintptr_t)pair.target_memory, sizeof(word), word);
	deadline_ms = test_now_ms() + 30000;
	while (((volatile uint8_t *)pair.target)[sizeof(word) - 1] != 0x66)
		assert_true(test_now_ms() < deadline_ms);
	pair.ops->deregister_memory(pair.server_device, &mr, 1);
	do {
		assert_true(local_peer_hear(&intruder.peer, &answer, bytes,
					    TARGET_BYTES));
	} while (answer.opcode == SOFT_ACK && answer.sequence == first - 1);
	assert_int_equal(answer.opcode, SOFT_RESPONSE);
	assert_int_equal(answer.sequence, first);
	assert_true(local_peer_hear(&intruder.peer, &answer, bytes,
				    TARGET_BYTES));
	assert_int_equal(answer.opcode, SOFT_ERROR);
	assert_int_equal(answer.sequence, first + 1);
	assert_int_equal(answer.status, SOFT_REFUSED_ACCESS);
	intruder_go(&intruder, &pair);
	test_pair_close(&pair);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rest_of_a_write_is_not_placed_after_its_key),
		cmocka_unit_test(end_of_a_key_waits_for_what_is_under_way),
		cmocka_unit_test(rest_of_a_read_is_not_sent_after_its_key),
		cmocka_unit_test(refused_read_is_told_before_what_follows_it),
	};

	/* Only a device that maps has a local socket. */
	setenv("RBX_TEST_FABRIC", "soft", 1);
	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
