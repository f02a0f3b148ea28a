/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * client.c - sessions, and carrying out what the lender decides.
 *
 * The lender (core/lender.h) decides; this file acts. Each client has its own protection
 * domain for its slabs and its data queue pairs, so the keys of other clients are of no
 * use to it. A client ends in this order. First its queue pairs end, at once, so that
 * none of its operations is in flight. Then the workers end each slab: first the key,
 * then the memory. Then its domain ends. The lender is told after each slab, and may lend
 * that slab again only then. The client's entry is reused only after its last slab has
 * ended.
 */
#include <stdio.h>
#include <string.h>

#include "server/state.h"

static void client_name(struct rbx_client *client, const char *address)
{
	const char *credential = client->owner->credential;

	memcpy(client->address, address, sizeof(client->address));
	snprintf(client->name, sizeof(client->name), *credential ? "%s (%s)" : "%s", address,
		 credential);
}

/* Takes an entry for a client, and one of its owner. */
static uint32_t client_take(struct rbx_server *s, const char *credential, uint64_t session_id,
			    uint64_t now_ns, struct rbx_client **out)
{
	struct rbx_owner *owner = rbx_owner_take(s, credential);
	struct rbx_client *client = owner ? rbx_client_take(s) : NULL;
	uint32_t reason = RBX_REASON_TOO_MANY;

	if (client)
		reason = rbx_lender_admit(s->lender, session_id,
					  rbx_owner_number(s, owner), now_ns);
	if (!reason) {
		*client = (struct rbx_client){ .session_id = session_id, .owner = owner };
		*out = client;
		return reason;
	}
	if (client)
		rbx_client_give(s, client);
	if (owner)
		rbx_owner_give(s, owner);
	return reason;
}

uint32_t rbx_client_admit(struct rbx_server *s, const char *address,
			  const char credential[RBX_CREDENTIAL_BYTES],
			  uint64_t now_ns, struct rbx_client **out)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_client *client;
	struct rbx_domain *domain;
	uint64_t session_id;
	uint32_t reason;

	if (rbx_random(&session_id, sizeof(session_id)) || !session_id ||
	    rbx_client_find(s, session_id))
		return RBX_REASON_INTERNAL;
	if (s->fabric.ops->create_domain(s->device, &domain, error)) {
		rbx_log(&s->log, "cannot admit client %s: %s", address, error);
		return RBX_REASON_INTERNAL;
	}
	reason = client_take(s, credential, session_id, now_ns, &client);
	if (reason) {
		s->fabric.ops->destroy_domain(domain);
		return reason;
	}
	rbx_id_map_put(&s->sessions, session_id, rbx_client_index(s, client));
	client->own = (struct rbx_holder){
		.id = session_id,
		.domain = domain,
		.number = rbx_client_index(s, client),
	};
	client->admitted_ns = now_ns;
	client_name(client, address);
	rbx_log(&s->log, "client %s admitted", client->name);
	*out = client;
	return RBX_REASON_NONE;
}

static void domain_end(struct rbx_server *s, struct rbx_client *client)
{
	if (client->own.id || client->own.slabs_held)
		return;
	s->fabric.ops->destroy_domain(client->own.domain);
	client->own.domain = NULL;
	rbx_owner_give(s, client->owner);
	rbx_client_give(s, client);
}

void rbx_holder_slab_ended(struct rbx_server *s, struct rbx_holder *holder)
{
	if (holder->is_volume) {
		rbx_volume_slab_ended(s, RBX_CONTAINER_OF(holder, struct rbx_kept_volume,
							  holder));
		return;
	}
	RBX_ASSERT(holder->slabs_held > 0);
	holder->slabs_held--;
	domain_end(s, RBX_CONTAINER_OF(holder, struct rbx_client, own));
}

void rbx_client_leave(struct rbx_server *s, struct rbx_client *client)
{
	struct rbx_client left = { .own = client->own, .owner = client->owner };
	struct rbx_user_message_ends ends;

	left.own.id = 0;
	rbx_data_qps_end(s, client);
	if (client->volume)
		rbx_volume_client_left(s, client);
	if (client->reading)
		rbx_volume_reader_left(client);
	if (client->connection)
		rbx_connection_end(s, client->connection);
	if (client->attempt)
		rbx_connection_end(s, client->attempt);
	if (client->leaving)
		rbx_half_open_orphan(s, client->leaving);
	rbx_lender_leave(s->lender, client->session_id);
	rbx_id_map_remove(&s->sessions, client->session_id);
	rbx_mailbox_end(&client->mailbox, -EHOSTUNREACH, &ends);
	explicit_bzero(client, sizeof(*client));
	*client = left;
	domain_end(s, client);
	rbx_user_messages_tell(s, &ends);
}

static void client_expire(struct rbx_server *s, uint64_t session_id)
{
	struct rbx_client *client = rbx_client_find(s, session_id);

	RBX_ASSERT(client);
	rbx_log(&s->log, "client %s was silent for %u ms: %u slabs taken back",
		client->name, s->options.lease_ms,
		rbx_lender_lent_to(s->lender, session_id));
	rbx_client_leave(s, client);
}

static void client_ask(struct rbx_server *s, uint64_t now_ns,
		       const struct rbx_lender_action *ask)
{
	struct rbx_kept_volume *kept = rbx_volume_of_holder(s, ask->session_id);
	struct rbx_client *client = kept ? kept->writer :
					   rbx_client_find(s, ask->session_id);
	uint64_t grace_ms = (ask->until_ns - now_ns) / 1000000;
	const struct rbx_wire_message message = {
		.type = RBX_WIRE_SLAB_EVICT,
		.epoch = ask->loan.epoch,
		.evict = {
			.slab_id = ask->loan.slab_id,
			.grace_ms = (uint32_t)RBX_MIN(grace_ms, UINT32_MAX),
		},
	};

	RBX_ASSERT(client || kept);
	if (!client || !client->connection || !client->connection->client_is_up)
		return; /* not connected: it is reminded later */
	if (rbx_unheard_is_full(&client->connection->unheard) ||
	    !rbx_connection_tell(s, client->connection, &message))
		rbx_lender_ask_again(s->lender, ask->loan.slab_id, now_ns);
	else
		rbx_unheard_add(&client->connection->unheard);
}

bool rbx_lender_serve(struct rbx_server *s, uint64_t now_ns)
{
	struct rbx_lender_action action;
	uint32_t count;

	for (count = 0; count < RBX_SERVER_ACTIONS_PER_TURN; count++) {
		if (!rbx_lender_next(s->lender, now_ns, &action))
			return false;
		switch (action.kind) {
		case RBX_LENDER_EXPIRE:
			client_expire(s, action.session_id);
			break;
		case RBX_LENDER_END:
			rbx_slab_end(s, action.loan.slab_id);
			break;
		case RBX_LENDER_ASK:
			client_ask(s, now_ns, &action);
			break;
		}
	}
	return true;
}
