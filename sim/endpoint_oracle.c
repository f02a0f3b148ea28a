/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* endpoint_oracle.c - checks the promises of endpoints, see endpoint.h. */
#include <errno.h>
#include <string.h>

#include "sim/endpoint.h"
#include "sim/fail.h"
#include "sim/sites.h"
#include "sim/tally.h"
#include "sim/world.h"

struct rbx_sim_connection rbx_sim_connections[RBX_SIM_CONNECTIONS_MAX];
uint32_t rbx_sim_connections_count;

#define STAMP 0x5a

uint32_t rbx_sim_text_make(uint8_t *text, uint32_t connection, uint32_t side,
			   enum rbx_sim_text kind, uint32_t number)
{
	const uint32_t head[] = { connection, side, (uint32_t)kind, number };
	uint32_t more = number * 37 % (RBX_SIM_TEXT_BYTES - sizeof(head) + 1);

	memcpy(text, head, sizeof(head));
	for (uint32_t i = 0; i < more; i++)
		text[sizeof(head) + i] = (uint8_t)(number * 13 + i);
	return (uint32_t)sizeof(head) + more;
}

void rbx_sim_endpoint_heard(uint32_t connection, uint32_t side,
			    const struct rbx_completion *completion,
			    const uint8_t *text,
			    const struct rbx_sim_exported *exported,
			    uint32_t gift_key)
{
	struct rbx_sim_stream *stream =
		&rbx_sim_connections[connection].streams[!side];
	uint32_t number = ++stream->heard, length;
	uint8_t wanted[RBX_SIM_TEXT_BYTES];
	enum rbx_sim_text kind;
	bool is_write, ends;

	if (number > stream->said)
		rbx_sim_fail("messages", "connection %u: %u messages were said, and more are heard",
			     connection, stream->said);
	kind = (enum rbx_sim_text)stream->kinds[number];
	is_write = kind == RBX_SIM_TEXT_WRITTEN;
	ends = kind == RBX_SIM_TEXT_SENT_INVALIDATE;
	length = rbx_sim_text_make(wanted, connection, !side, kind, number);
	if (is_write)
		text = exported ? exported->written[number % RBX_SIM_WINDOWS] :
				  wanted;
	if (completion->kind != (is_write ? RBX_COMPLETION_WRITTEN :
					    RBX_COMPLETION_RECEIVED) ||
	    completion->length_bytes != length ||
	    memcmp(text, wanted, length) != 0)
		rbx_sim_fail("messages", "connection %u: %u bytes are heard in place of message %u",
			     connection, completion->length_bytes, number);
	if (completion->has_immediate !=
		    (is_write || kind == RBX_SIM_TEXT_SENT_IMMEDIATE) ||
	    (completion->has_immediate && completion->immediate != number) ||
	    completion->has_invalidated != ends ||
	    (ends && completion->invalidated_key != gift_key))
		rbx_sim_fail("messages", "connection %u: message %u comes with what was not sent along",
			     connection, number);
	if (ends)
		stream->gift_has_ended = true;
	rbx_sim_world.others_done++;
	rbx_sim_tally(RBX_SIM_TALLY_endpoint_messages, 1);
}

/* After an end has drained it is known what it has received. */
static void heard_check(uint32_t connection, uint32_t side)
{
	const struct rbx_sim_connection *both =
		&rbx_sim_connections[connection];
	const struct rbx_sim_stream *stream = &both->streams[side];

	if (both->has_drained[!side] && stream->had > stream->heard)
		rbx_sim_fail("messages", "connection %u: %u messages ended well, and %u were heard",
			     connection, stream->had, stream->heard);
}

void rbx_sim_endpoint_said(uint32_t connection, uint32_t side, uint32_t number,
			   int status)
{
	struct rbx_sim_stream *stream =
		&rbx_sim_connections[connection].streams[side];

	if (status != 0)
		return;
	if (number != ++stream->had)
		rbx_sim_fail("order", "connection %u: message %u ends in place of %u",
			     connection, number, stream->had);
	heard_check(connection, side);
}

void rbx_sim_endpoint_drained(uint32_t connection, uint32_t side)
{
	rbx_sim_connections[connection].has_drained[side] = true;
	heard_check(connection, !side);
}

void rbx_sim_stamp(void *memory, size_t bytes)
{
	memset(memory, STAMP, bytes);
}

void rbx_sim_stamp_check(const void *memory, size_t bytes, const char *what)
{
	const uint8_t *at = memory;

	for (size_t i = 0; i < bytes; i++)
		if (at[i] != STAMP)
			rbx_sim_fail("revoked-key", "%s is written to when its key has ended",
				     what);
	rbx_sim_tally(RBX_SIM_TALLY_endpoint_keys_ended, 1);
}
