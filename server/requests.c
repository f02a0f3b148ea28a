/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * requests.c - the requests of a client after the handshake; borrowing.c has those about
 * slabs.
 *
 * Each message is a sign of life. A refusal by the lender is an answer like any other.
 * Only a violation of the protocol ends the connection.
 */
#include <string.h>

#include "include/rdmabox/rdmabox.h"
#include "lib/error.h"
#include "server/state.h"

uint64_t rbx_server_free_bytes(struct rbx_server *s)
{
	/* A request may wait for a slab that is still being emptied. */
	return rbx_lender_is_draining(s->lender) ?
		       0 :
		       rbx_lender_room(s->lender) * s->options.slab_bytes;
}

static void heartbeat(struct rbx_server *s, struct rbx_connection *c,
		      const struct rbx_wire_message *message)
{
	uint64_t lent_count =
		rbx_lender_lent_to(s->lender, rbx_holder_of(c->client)->id);
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
	rbx_unheard_heartbeat(&c->unheard);
	rbx_connection_answer(s, c, &answer);
}

void rbx_server_stats_fill(struct rbx_server *s, struct rbx_server_stats *stats)
{
	struct rbx_lender_counts counts;

	rbx_lender_counts(s->lender, &counts);
	*stats = (struct rbx_server_stats){
		.size_bytes = sizeof(*stats),
		.memory_bytes = rbx_server_lend_bytes(s),
		.lent_bytes = counts.slabs_lent * s->options.slab_bytes,
		.slab_bytes = s->options.slab_bytes,
		.slabs_lent = counts.slabs_lent,
		.clients = s->connected_count,
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
		.draining = rbx_lender_is_draining(s->lender),
	};
	rbx_traffic_fill(s, stats);
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

/* A session that removes a volume is not let near what is in it, and one that reads it has no slab
 * of its own. */
static bool is_about_a_slab(uint16_t type)
{
	return type == RBX_WIRE_SLAB_MAP || type == RBX_WIRE_SLAB_QUERY ||
	       type == RBX_WIRE_SLAB_UNMAP;
}

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
	if ((c->client->only_removes || c->client->reading) && is_about_a_slab(message->type)) {
		rbx_connection_refuse(s, c, message->request_id, RBX_REASON_OUT_OF_TURN);
		return;
	}
	switch (message->type) {
	case RBX_WIRE_SLAB_MAP:
		rbx_slab_map(s, c, message);
		break;
	case RBX_WIRE_SLAB_QUERY:
		rbx_slab_query(s, c, message);
		break;
	case RBX_WIRE_SLAB_UNMAP:
		rbx_slab_unmap(s, c, message);
		break;
	case RBX_WIRE_HEARTBEAT:
		heartbeat(s, c, message);
		break;
	case RBX_WIRE_STATS:
		stats_send(s, c, message);
		break;
	case RBX_WIRE_BYE:
		rbx_log(&s->log, "client %s has left", c->client->name);
		rbx_client_leave(s, c->client);
		break;
	case RBX_WIRE_USER_MESSAGE:
		rbx_user_message_received(s, c, message);
		break;
	case RBX_WIRE_USER_MESSAGE_TAKEN:
		rbx_user_message_taken(s, c, message);
		break;
	case RBX_WIRE_VOLUME_OPEN:
	case RBX_WIRE_VOLUME_LIST:
	case RBX_WIRE_VOLUME_ACCEPT:
	case RBX_WIRE_VOLUME_REMOVE:
	case RBX_WIRE_VOLUME_RESERVE:
	case RBX_WIRE_LABELS:
	case RBX_WIRE_SLAB_COMPLETE:
	case RBX_WIRE_SLAB_INCOMPLETE:
	case RBX_WIRE_INTENTS:
	case RBX_WIRE_VOLUME_BEHIND:
	case RBX_WIRE_VOLUME_READ:
		rbx_volume_request(s, c, message);
		break;
	default:
		rbx_connection_refuse(s, c, message->request_id,
				      RBX_REASON_OUT_OF_TURN);
	}
}
