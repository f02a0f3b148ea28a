/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * requests.c - what a client may ask once it is known.
 *
 * Each message is a sign of life, whatever it asks. A refusal of the lender is
 * an answer like any other; only what the protocol does not allow ends the
 * connection.
 */
#include <string.h>

#include "include/rdmabox/rdmabox.h"
#include "lib/error.h"
#include "server/state.h"

uint64_t rbx_server_free_bytes(struct rbx_server *s)
{
	struct rbx_lender_counts counts;

	rbx_lender_counts(s->lender, &counts);
	if (rbx_lender_is_draining(s->lender))
		return 0;
	return counts.slabs_free * s->options.slab_bytes;
}

static void grant_send(struct rbx_server *s, struct rbx_connection *c,
		       uint64_t request_id, const struct rbx_lending *lending)
{
	const struct rbx_slab_memory *slab = &s->slabs[lending->slab_id - 1];
	const struct rbx_wire_message grant = {
		.type = RBX_WIRE_SLAB_GRANT,
		.request_id = request_id,
		.epoch = lending->epoch,
		.grant = {
			.slab_id = lending->slab_id,
			.remote_addr = (uintptr_t)slab->addr,
			.length_bytes = s->options.slab_bytes,
			.free_bytes = rbx_server_free_bytes(s),
			.rkey = slab->mr->rkey,
		},
	};

	rbx_connection_answer(s, c, &grant);
}

static uint32_t slab_lend(struct rbx_server *s, const struct rbx_client *client,
			  uint64_t now_ns, struct rbx_lending *lending)
{
	uint64_t session_id = client->session_id;
	uint32_t reason;

	rbx_lender_set_short(s->lender, !rbx_host_has_room(s));
	reason = rbx_lender_lend(s->lender, session_id, lending);
	if (reason)
		return reason;
	if (!rbx_slab_memory_begin(s, &s->slabs[lending->slab_id - 1],
				   client))
		return RBX_REASON_NONE;
	rbx_log("a slab cannot be lent: %s", rbx_last_error());
	reason = rbx_lender_unmap(s->lender, session_id, lending);
	RBX_ASSERT(!reason);
	rbx_lender_serve(s, now_ns);
	return RBX_REASON_FULL;
}

static void slab_map(struct rbx_server *s, struct rbx_connection *c,
		     const struct rbx_wire_message *message, uint64_t now_ns)
{
	struct rbx_lending lending;
	uint32_t reason;

	reason = slab_lend(s, c->client, now_ns, &lending);
	if (reason)
		rbx_connection_answer_error(s, c, message->request_id, reason);
	else
		grant_send(s, c, message->request_id, &lending);
}

static void slab_query(struct rbx_server *s, struct rbx_connection *c,
		       const struct rbx_wire_message *message)
{
	const struct rbx_lending lending = { message->slab_id, message->epoch };
	uint32_t reason;

	reason = rbx_lender_check(s->lender, c->client->session_id, &lending);
	if (reason)
		rbx_connection_answer_error(s, c, message->request_id, reason);
	else
		grant_send(s, c, message->request_id, &lending);
}

static void slab_unmap(struct rbx_server *s, struct rbx_connection *c,
		       const struct rbx_wire_message *message, uint64_t now_ns)
{
	const struct rbx_lending lending = { message->slab_id, message->epoch };
	struct rbx_wire_message answer = {
		.type = RBX_WIRE_SLAB_UNMAPPED,
		.request_id = message->request_id,
		.epoch = message->epoch,
	};
	uint32_t reason;

	reason = rbx_lender_unmap(s->lender, c->client->session_id, &lending);
	if (reason) {
		rbx_connection_answer_error(s, c, message->request_id, reason);
		return;
	}
	rbx_lender_serve(s, now_ns); /* the answer says that it has ended */
	answer.free_bytes = rbx_server_free_bytes(s);
	rbx_connection_answer(s, c, &answer);
}

static void heartbeat(struct rbx_server *s, struct rbx_connection *c,
		      const struct rbx_wire_message *message)
{
	uint64_t lent_count =
		rbx_lender_lent_to(s->lender, c->client->session_id);
	const struct rbx_wire_message answer = {
		.type = RBX_WIRE_HEARTBEAT_REPLY,
		.request_id = message->request_id,
		.heartbeat_reply = {
			.free_bytes = rbx_server_free_bytes(s),
			.lent_bytes = lent_count * s->options.slab_bytes,
			.draining = rbx_lender_is_draining(s->lender),
		},
	};

	s->heartbeats++;
	rbx_connection_answer(s, c, &answer);
}

void rbx_server_stats_fill(struct rbx_server *s, struct rbx_server_stats *stats)
{
	struct rbx_lender_counts counts;
	uint64_t connected_count = 0;
	uint32_t i;

	for (i = 0; i < RBX_CLIENTS_MAX; i++)
		if (s->clients[i].connection)
			connected_count++;
	rbx_lender_counts(s->lender, &counts);
	*stats = (struct rbx_server_stats){
		.size_bytes = sizeof(*stats),
		.memory_bytes = s->slabs_count * s->options.slab_bytes,
		.lent_bytes = counts.slabs_lent * s->options.slab_bytes,
		.slab_bytes = s->options.slab_bytes,
		.slabs_lent = counts.slabs_lent,
		.clients = connected_count,
		.sessions = counts.sessions,
		.slabs_mapped = counts.slabs_mapped,
		.slabs_unmapped = counts.slabs_unmapped,
		.slabs_revoked = counts.slabs_revoked,
		.leases_expired = counts.leases_expired,
		.refused_full = counts.refused_full,
		.refused_quota = counts.refused_quota,
		.refused_auth = s->refused_auth,
		.refused_malformed = s->refused_malformed,
		.heartbeats = s->heartbeats,
		.uptime_s = (rbx_now_ns() - s->started_ns) / 1000000000,
		.messages_received = s->messages_received,
		.messages_sent = s->messages_sent,
	};
}

static void stats_send(struct rbx_server *s, struct rbx_connection *c,
		       const struct rbx_wire_message *message)
{
	struct rbx_server_stats stats;
	struct rbx_wire_message answer = {
		.type = RBX_WIRE_STATS_REPLY,
		.request_id = message->request_id,
	};
	struct rbx_wire_counters *counters = &answer.counters;

	rbx_server_stats_fill(s, &stats);
#define RBX_COUNTER(name, what) counters->values[counters->count++] = stats.name;
	RBX_SERVER_STATS(RBX_COUNTER)
#undef RBX_COUNTER
	rbx_connection_answer(s, c, &answer);
}

#define RBX_COUNT_ONE(name, what) +1
RBX_STATIC_ASSERT((0 RBX_SERVER_STATS(RBX_COUNT_ONE)) <= RBX_WIRE_COUNTERS_MAX,
		  "all numbers fit into one message");
#undef RBX_COUNT_ONE

void rbx_request_message(struct rbx_server *s, struct rbx_connection *c,
			 const struct rbx_wire_message *message,
			 uint64_t now_ns)
{
	if (rbx_lender_heard(s->lender, c->client->session_id, now_ns)) {
		rbx_connection_refuse(s, c, message->request_id,
				      RBX_REASON_STALE_SESSION);
		return;
	}
	c->client_is_up = true;
	switch (message->type) {
	case RBX_WIRE_SLAB_MAP:
		slab_map(s, c, message, now_ns);
		break;
	case RBX_WIRE_SLAB_QUERY:
		slab_query(s, c, message);
		break;
	case RBX_WIRE_SLAB_UNMAP:
		slab_unmap(s, c, message, now_ns);
		break;
	case RBX_WIRE_HEARTBEAT:
		heartbeat(s, c, message);
		break;
	case RBX_WIRE_STATS:
		stats_send(s, c, message);
		break;
	case RBX_WIRE_BYE:
		rbx_log("client %s has left", c->client->name);
		rbx_client_leave(s, c->client);
		rbx_lender_serve(s, now_ns);
		break;
	case RBX_WIRE_LETTER:
		rbx_letter_received(s, c, message);
		break;
	case RBX_WIRE_LETTER_TAKEN:
		rbx_letter_taken(s, c, message);
		break;
	default:
		rbx_connection_refuse(s, c, message->request_id,
				      RBX_REASON_OUT_OF_TURN);
	}
}
