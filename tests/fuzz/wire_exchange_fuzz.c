/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wire_exchange_fuzz.c - messages of an exchange: what decodes encodes to the very bytes it
 * came from. A whole input is what a hostile peer says, message by message, to an exchange
 * that has operations and offers of its own: it may refuse, but nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "core/exchange.h"

#define COUNT 4u

static void one_decodes(const uint8_t *bytes, struct rbx_wire_exchange *message)
{
	uint8_t again[RBX_WIRE_EXCHANGE_BYTES];

	rbx_wire_exchange_encode(message, again);
	if (memcmp(bytes, again, sizeof(again)))
		abort();
}

/* Half of the bytes of a random message would be refused; so that more is reached, the magic,
 * the version and the zeros are put right. */
static void put_right(uint8_t *bytes)
{
	memcpy(bytes, "RBXE\1\0", 6);
	bytes[6] = (uint8_t)(1 + bytes[6] % 3);
	bytes[7] = 0;
	memset(bytes + 9, 0, 6); /* ids that may be ours */
	memset(bytes + 44, 0, 4);
}

static void say_all(struct rbx_exchange *exchange)
{
	struct rbx_wire_exchange message;
	struct rbx_exchange_post post;
	struct rbx_exchange_end end;
	uint32_t index;

	while (rbx_exchange_next_post(exchange, &post)) {
		rbx_exchange_posted(exchange, post.index);
		rbx_exchange_completed(exchange, post.index, 0);
	}
	while (rbx_exchange_next_message(exchange, &message)) {
		uint8_t bytes[RBX_WIRE_EXCHANGE_BYTES];

		rbx_wire_exchange_encode(&message, bytes);
	}
	while (rbx_exchange_next_key(exchange, &index))
		rbx_exchange_key_ended(exchange, index);
	while (rbx_exchange_next_end(exchange, &end))
		;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
	struct rbx_exchange *exchange = malloc(rbx_exchange_size(COUNT));
	struct rbx_wire_exchange message;
	uint8_t mended[RBX_WIRE_EXCHANGE_BYTES];
	uint64_t now_ns = 0;
	size_t at;

	if (!rbx_wire_exchange_decode(bytes, length_bytes, &message))
		one_decodes(bytes, &message);
	rbx_exchange_init(exchange, COUNT, length_bytes % 2);
	for (at = 0; at + sizeof(mended) <= length_bytes; at += sizeof(mended)) {
		struct rbx_exchange_wish wish = {
			.tag = bytes[at + 16],
			.deadline_ns = now_ns + 2,
			.length_bytes = 1 + bytes[at + 32],
			.access = (uint16_t)(1 + bytes[at] % 2),
		};

		memcpy(mended, bytes + at, sizeof(mended));
		put_right(mended);
		if (bytes[at + 1] & 1)
			(void)rbx_exchange_operate(exchange, &wish);
		if (bytes[at + 1] & 2)
			(void)rbx_exchange_offer(exchange, &wish);
		if (bytes[at + 1] & 4)
			say_all(exchange);
		if (!rbx_wire_exchange_decode(mended, sizeof(mended), &message) &&
		    rbx_exchange_hear(exchange, &message))
			rbx_exchange_break(exchange, -EPROTO);
		rbx_exchange_tick(exchange, now_ns++);
	}
	rbx_exchange_break(exchange, -EHOSTUNREACH);
	say_all(exchange);
	free(exchange);
	return 0;
}
