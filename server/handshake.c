/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * handshake.c - the handshake: an untrusted client becomes a client, or resumes its
 * session.
 *
 * HELLO says whether the client has a secret, by which name, and whether it resumes a
 * session. CHALLENGE answers with a nonce of the server, also to a name that there is not.
 * AUTH proves, over both, that the client has a secret of that name or the session's key.
 * Before that proof nothing is admitted, ended or kept. On a resume, all that the session
 * had open is ended before WELCOME is sent. So what the client sends again cannot meet its
 * earlier requests. Loans that the client never learned of are taken back
 * (wire/PROTOCOL.md, "Resume").
 */
#include <string.h>

#include "server/state.h"

/* Why a session is not there any more: another client may have opened its volume. */
static uint32_t stale_reason(const struct rbx_server *s, uint64_t session_id)
{
	uint32_t i;

	for (i = 0; i < s->volumes.used; i++)
		if (session_id && s->volumes.kept[i].shut_out_session_id == session_id)
			return RBX_REASON_TAKEN_OVER;
	return RBX_REASON_STALE_SESSION;
}

static uint32_t hello_judge(struct rbx_server *s, uint64_t named_session_id,
			    const struct rbx_wire_hello *hello)
{
	bool has_secret = hello->flags & RBX_WIRE_HAS_SECRET;

	if (has_secret && !rbx_credentials_are_any(&s->credentials))
		return RBX_REASON_SECRET_UNKNOWN;
	if (!has_secret && rbx_credentials_are_any(&s->credentials))
		return RBX_REASON_SECRET_REQUIRED;
	if (named_session_id && hello->session_id != named_session_id)
		return RBX_REASON_OUT_OF_TURN; /* it has the slot of a client */
	if (!(hello->flags & RBX_WIRE_RESUME))
		return RBX_REASON_NONE;
	if (hello->incarnation != s->incarnation)
		return RBX_REASON_STALE_SESSION;
	return rbx_client_find(s, hello->session_id) ? RBX_REASON_NONE :
						       stale_reason(s, hello->session_id);
}

static void hello_received(struct rbx_server *s, struct rbx_connection *c,
			   const struct rbx_wire_message *hello)
{
	uint32_t reason = hello_judge(s, c->session_id, &hello->hello);
	struct rbx_wire_message challenge = {
		.type = RBX_WIRE_CHALLENGE,
		.request_id = hello->request_id,
		.challenge.incarnation = s->incarnation,
	};

	if (!reason && rbx_random(challenge.challenge.nonce,
				  sizeof(challenge.challenge.nonce)))
		reason = RBX_REASON_INTERNAL;
	if (reason) {
		rbx_connection_refuse(s, c, hello->request_id, reason);
		return;
	}
	c->resumes = hello->hello.flags & RBX_WIRE_RESUME;
	c->resume_session_id = hello->hello.session_id;
	c->resume_last_epoch = hello->hello.last_epoch;
	memcpy(c->credential, hello->hello.credential, sizeof(c->credential));
	rbx_transcript_make(&c->transcript, hello, &challenge);
	rbx_connection_set_state(s, c, RBX_CONNECTION_CHALLENGED,
				 c->deadline_ns);
	rbx_connection_answer(s, c, &challenge);
}

/* The proof holds: makes or finds the session and gives it this connection. */
static uint32_t session_begin(struct rbx_server *s, struct rbx_connection *c,
			      struct rbx_root root, uint64_t now_ns,
			      struct rbx_client *client)
{
	uint32_t reason;

	if (client) {
		reason = rbx_lender_resumed(s->lender, client->session_id,
					    now_ns, c->resume_last_epoch);
		if (reason)
			return reason;
		if (client->connection)
			rbx_connection_end(s, client->connection);
		if (client->leaving)
			rbx_connection_end(s, client->leaving);
		rbx_data_qps_end(s, client);
		if (client->volume)
			rbx_volume_client_resumed(s, client, c->resume_last_epoch);
		rbx_log(&s->log, "client %s is back", client->name);
	} else {
		reason = rbx_client_admit(s, c->qp->peer_name, c->credential, now_ns,
					  &client);
		if (reason)
			return reason;
		rbx_key_of_session(root, &c->transcript, &client->key);
	}
	rbx_key_of_connection(root, &c->transcript, &client->connection_key);
	client->attach_serial = 0;
	client->connection = c;
	c->client = client;
	s->connected_count++;
	return RBX_REASON_NONE;
}

static void welcome_send(struct rbx_server *s, struct rbx_connection *c,
			 uint64_t request_id, struct rbx_root root)
{
	uint64_t quota_bytes = c->client->owner->quota_bytes;
	struct rbx_wire_message welcome = {
		.type = RBX_WIRE_WELCOME,
		.request_id = request_id,
		.welcome = {
			.session_id = c->client->session_id,
			.incarnation = s->incarnation,
			.slab_bytes = s->options.slab_bytes,
			.memory_bytes = rbx_server_lend_bytes(s),
			.free_bytes = rbx_server_free_bytes(s),
			.quota_bytes = quota_bytes ? quota_bytes : UINT64_MAX,
			.lease_ms = s->options.lease_ms,
			.requests_max = RBX_REQUESTS_MAX,
			.queue_pairs_max = RBX_QUEUE_PAIRS_MAX,
			.draining = rbx_lender_is_draining(s->lender),
		},
	};

	memcpy(welcome.welcome.labels, s->options.labels, sizeof(welcome.welcome.labels));
	rbx_proof_of_server(root, &c->transcript, &welcome,
			    welcome.welcome.proof);
	rbx_connection_answer(s, c, &welcome);
}

/*
 * Which of the credential's secrets the proof is made with; NULL: none. It takes as long
 * whatever the answer is: a proof is computed for each secret that a name may have, and with a
 * decoy in place of those that it has not.
 */
static const struct rbx_root *root_proved(const struct rbx_connection *c,
					  const struct rbx_credential *credential,
					  const uint8_t *proof)
{
	const struct rbx_root *proved = NULL;
	uint8_t expected[RBX_WIRE_PROOF_BYTES];
	uint32_t i;

	for (i = 0; i < RBX_SECRETS_OF_NAME_MAX; i++) {
		rbx_proof_of_client(credential->roots[i], &c->transcript, expected);
		if (rbx_proof_equal(expected, proof, sizeof(expected)) &&
		    i < credential->roots_count)
			proved = &credential->roots[i];
	}
	return proved;
}

/* A session belongs to the credential that it began with, even if that is gone. */
static bool key_is_proved(const struct rbx_connection *c, const struct rbx_client *client,
			  struct rbx_root key, const uint8_t *proof)
{
	uint8_t expected[RBX_WIRE_PROOF_BYTES];

	rbx_proof_of_client(key, &c->transcript, expected);
	return rbx_proof_equal(expected, proof, sizeof(expected)) &&
	       !strcmp(client->owner->credential, c->credential);
}

static void auth_received(struct rbx_server *s, struct rbx_connection *c,
			  const struct rbx_wire_message *auth, uint64_t now_ns)
{
	uint32_t reason = RBX_REASON_WRONG_SECRET;
	const struct rbx_root *root = NULL;
	struct rbx_client *client = NULL;
	struct rbx_credential credential;
	struct rbx_key session_key;
	struct rbx_root key_root;

	if (c->resumes) {
		client = rbx_client_find(s, c->resume_session_id);
		if (!client) {
			rbx_connection_refuse(s, c, auth->request_id,
					      stale_reason(s, c->resume_session_id));
			return;
		}
		session_key = client->key;
		key_root = rbx_root_of_key(&session_key);
		if (key_is_proved(c, client, key_root, auth->auth.proof))
			root = &key_root;
	} else {
		rbx_credentials_find(&s->credentials, c->credential, &credential);
		root = root_proved(c, &credential, auth->auth.proof);
	}
	if (root)
		reason = session_begin(s, c, *root, now_ns, client);
	if (reason) {
		rbx_connection_refuse(s, c, auth->request_id, reason);
		return;
	}
	rbx_connection_set_state(s, c, RBX_CONNECTION_OPEN, 0);
	c->session_id = c->client->session_id;
	welcome_send(s, c, auth->request_id, *root);
	rbx_seals_begin(&c->seals, RBX_SIDE_SERVER, *root, &c->transcript);
}

void rbx_handshake_message(struct rbx_server *s, struct rbx_connection *c,
			   const struct rbx_wire_message *message,
			   uint64_t now_ns)
{
	if (c->state == RBX_CONNECTION_NEW && message->type == RBX_WIRE_HELLO)
		hello_received(s, c, message);
	else if (c->state == RBX_CONNECTION_CHALLENGED &&
		 message->type == RBX_WIRE_AUTH)
		auth_received(s, c, message, now_ns);
	else
		rbx_connection_refuse(s, c, message->request_id,
				      RBX_REASON_OUT_OF_TURN);
}
