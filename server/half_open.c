/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * half_open.c - chooses the half-open connections that may have a slot, if too many want
 * one.
 *
 * A connection that has not proved itself takes a slot. Whoever can reach the server can
 * make any number of connections and send nothing on them. This must not keep a client
 * out:
 *
 * - A new connection that finds no free slot takes that of the oldest half-open
 *   connection. But if this one is so young that it may be in the middle of a handshake,
 *   the new one is refused, and may try again.
 * - One address may have only some of the slots. Then a new connection takes one of its
 *   own address.
 * - A client that resumes names its session when it connects, and has a slot of its own
 *   for that. Untrusted clients cannot take it. An attacker may know the number of
 *   another client's session if it has listened on the wire. Then it can disturb that
 *   client, and no other.
 * - If a client's connection is refused, it keeps the client's slot until it has ended.
 *   The message with the reason is a courtesy to this client. Once the client resumes it
 *   needs the message no more, so the old connection ends and the new one gets the slot.
 *   So a client that is refused and comes back, again and again, has at most two slots,
 *   and cuts short only its own messages.
 * - The end of a session ends the attempt to resume it. If a client's lease is over, the
 *   connection on which it is told so goes on in the slot of an untrusted client. There
 *   may be more of these than slots; then each new connection takes the slot of one.
 */
#include "fabric/source.h"
#include "server/state.h"

/* Half-open connections whose slot a new one might take. */
struct rivals {
	struct rbx_connection *oldest; /* of all untrusted clients */
	struct rbx_connection *oldest_of_source;
	uint32_t of_source_count;
};

static bool is_older(const struct rbx_connection *c,
		     const struct rbx_connection *than)
{
	return !than || c->arrived_ns < than->arrived_ns;
}

static struct rivals rivals_find(struct rbx_server *s, const char *peer_name)
{
	struct rivals rivals = { 0 };
	struct rbx_connection *c;

	for (c = s->untrusted.first; c; c = c->next) {
		if (is_older(c, rivals.oldest))
			rivals.oldest = c;
		if (!rbx_is_same_source(c->qp->peer_name, peer_name))
			continue;
		rivals.of_source_count++;
		if (is_older(c, rivals.oldest_of_source))
			rivals.oldest_of_source = c;
	}
	return rivals;
}

/* Makes room for an untrusted client. False: there is none now. */
static bool untrusted_fits(struct rbx_server *s, const char *peer_name,
			   uint64_t now_ns)
{
	struct rivals rivals = rivals_find(s, peer_name);
	struct rbx_connection *victim = NULL;

	if (rivals.of_source_count >= RBX_HANDSHAKES_OF_SOURCE_MAX)
		victim = rivals.oldest_of_source;
	else if (s->untrusted.count >= RBX_HANDSHAKES_MAX)
		victim = rivals.oldest;
	if (!victim)
		return true;
	if (now_ns - victim->arrived_ns < RBX_HANDSHAKE_UNDISTURBED_NS)
		return false;
	rbx_log_hostile(&s->hostile, victim->qp->peer_name,
			"it said nothing while others waited", now_ns);
	rbx_connection_end(s, victim);
	return true;
}

bool rbx_half_open_admit(struct rbx_server *s, const char *peer_name,
			 uint64_t named_session_id, uint64_t now_ns)
{
	const struct rbx_client *client = rbx_client_find(s, named_session_id);

	if (!client)
		return untrusted_fits(s, peer_name, now_ns);
	/* One attempt for each session: the latest. */
	if (client->attempt)
		rbx_connection_end(s, client->attempt);
	return true;
}

/* ---- Timeouts -------------------------------------------------------------*/

static void list_tick(struct rbx_server *s, struct rbx_connection_list *list,
		      uint64_t now_ns)
{
	struct rbx_connection *c, *next;

	for (c = list->first; c; c = next) {
		next = c->next;
		if (now_ns < c->deadline_ns)
			continue;
		if (c->state == RBX_CONNECTION_CLOSING)
			rbx_connection_end(s, c);
		else
			rbx_connection_refuse(s, c, 0, RBX_REASON_TOO_SLOW);
	}
}

void rbx_half_open_tick(struct rbx_server *s, uint64_t now_ns)
{
	if (now_ns - s->half_open_checked_ns < RBX_HALF_OPEN_CHECK_NS)
		return;
	s->half_open_checked_ns = now_ns;
	list_tick(s, &s->untrusted, now_ns);
	list_tick(s, &s->resumers, now_ns);
}

static void list_end(struct rbx_server *s, struct rbx_connection_list *list)
{
	while (list->first)
		rbx_connection_end(s, list->first);
}

void rbx_half_open_end_all(struct rbx_server *s)
{
	list_end(s, &s->untrusted);
	list_end(s, &s->resumers);
}
