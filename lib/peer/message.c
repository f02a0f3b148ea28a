/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * message.c - user messages to the program that serves: the public calls.
 *
 * They check the arguments. The session does the rest (client/session_messages.c).
 */
#include "lib/peer/internal.h"

#include "include/rdmabox/message.h"
#include "wire/message.h"

RBX_STATIC_ASSERT(RBX_MESSAGE_BYTES_MAX == RBX_WIRE_USER_MESSAGE_BYTES_MAX,
		  "a message is a user message");

static int check(const struct rbx_peer *peer, const void *data, size_t length)
{
	if (!peer || (!data && length))
		return rbx_error(-EINVAL, "a message needs a peer and data");
	if (length > RBX_MESSAGE_BYTES_MAX)
		return rbx_error(-EINVAL,
				 "a message of %zu bytes: at most %u fit; write "
				 "the rest to borrowed memory",
				 length, RBX_MESSAGE_BYTES_MAX);
	return 0;
}

int rbx_message_submit(struct rbx_peer *peer, const void *data, size_t length,
		       void (*done)(int status, void *user), void *user)
{
	int err = check(peer, data, length);

	if (!err)
		err = rbx_guard_use(peer->ctx, "rbx_message_submit");
	if (!err)
		err = rbx_session_message_submit(peer->session, data, length,
						 done, user);
	if (!err)
		RBX_ADD_RELAXED(&peer->ctx->counters.messages_sent, 1);
	return err;
}

int rbx_message_send(struct rbx_peer *peer, const void *data, size_t length)
{
	int err = check(peer, data, length);

	if (!err)
		err = rbx_guard_wait(peer->ctx, "rbx_message_send");
	if (!err)
		err = rbx_session_message_send(peer->session, data, length);
	if (!err)
		RBX_ADD_RELAXED(&peer->ctx->counters.messages_sent, 1);
	return err;
}

int rbx_peer_on_message(struct rbx_peer *peer,
			void (*message)(struct rbx_peer *peer, const void *data,
					size_t length, void *user),
			void *user)
{
	struct rbx_session_listener listener = {
		.message = message,
		.peer = peer,
		.user = user,
	};
	int err;

	if (!peer || !message)
		return rbx_error(-EINVAL, "a handler needs a peer and a "
					  "function");
	err = rbx_guard_use(peer->ctx, "rbx_peer_on_message");
	if (err)
		return err;
	listener.heard_count = &peer->ctx->counters.messages_received;
	return rbx_session_listen(peer->session, &listener);
}
