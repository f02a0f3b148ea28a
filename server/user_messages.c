/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * user_messages.c - messages between the program that serves and the programs of its
 * clients.
 *
 * The mailbox of a client (core/mailbox.h) decides which message is sent, is sent again,
 * or was received before. This file gives them to the connection and to the program. A
 * client's message is answered when the handler has returned. The handler runs on the
 * control thread, so a handler that blocks would stop all clients.
 *
 * When the server stops, the messages that have not ended do so after the last pass of
 * the control thread (server.c).
 *
 * The handler and the callbacks at the end of our own messages are called without the
 * lock, so that the program may send from them. Only the control thread ends connections
 * and clients. It is the thread that makes the call, so both are still there after it.
 *
 * A message that finds no free buffer is sent when one is free (connection.c). A message
 * to a client without a connection is sent when the client is back and has told which
 * messages it has received.
 */
#include <errno.h>

#include "include/rdmabox/message.h"
#include "lib/error.h"
#include "lib/guard.h"
#include "server/state.h"

RBX_STATIC_ASSERT(RBX_MESSAGE_BYTES_MAX == RBX_WIRE_USER_MESSAGE_BYTES_MAX,
		  "a message is a user message");

void rbx_user_messages_tell(struct rbx_server *s,
			    const struct rbx_user_message_ends *ends)
{
	const char *before;

	if (!ends->count)
		return;
	pthread_mutex_unlock(&s->lock);
	before = rbx_callback_enter("callback of a message");
	rbx_user_message_ends_tell(ends);
	rbx_callback_leave(before);
	pthread_mutex_lock(&s->lock);
}

void rbx_user_messages_send(struct rbx_server *s, struct rbx_client *client)
{
	struct rbx_wire_message message;

	if (!client->connection || !client->connection->client_is_up)
		return;
	while (rbx_mailbox_next(&client->mailbox, &message) &&
	       rbx_connection_tell(s, client->connection, &message))
		rbx_mailbox_sent(&client->mailbox);
}

static void
user_message_hand_over(struct rbx_server *s, struct rbx_client *client,
		       const struct rbx_wire_user_message *user_message)
{
	const struct rbx_server_options *o = &s->options;
	const char *before;

	s->messages_received++;
	if (o->message) {
		pthread_mutex_unlock(&s->lock);
		before = rbx_callback_enter("message handler");
		o->message(s, client->session_id, user_message->bytes,
			   user_message->length_bytes, o->user);
		rbx_callback_leave(before);
		pthread_mutex_lock(&s->lock);
	}
	rbx_mailbox_heard(&client->mailbox);
}

void rbx_user_message_received(struct rbx_server *s, struct rbx_connection *c,
			       const struct rbx_wire_message *message)
{
	struct rbx_client *client = c->client;
	struct rbx_wire_message receipt;

	switch (rbx_mailbox_judge(&client->mailbox,
				  message->user_message.sequence)) {
	case RBX_USER_MESSAGE_NEW:
		user_message_hand_over(s, client, &message->user_message);
		break;
	case RBX_USER_MESSAGE_AGAIN:
		break;
	case RBX_USER_MESSAGE_AHEAD:
		rbx_connection_refuse(s, c, message->request_id,
				      RBX_REASON_OUT_OF_TURN);
		return;
	}
	receipt = rbx_mailbox_receipt(&client->mailbox, !s->options.message);
	receipt.request_id = message->request_id;
	rbx_connection_answer(s, c, &receipt);
}

void rbx_user_message_taken(struct rbx_server *s, struct rbx_connection *c,
			    const struct rbx_wire_message *message)
{
	struct rbx_user_message_ends ends;

	if (rbx_mailbox_taken(&c->client->mailbox, &message->user_message_taken,
			      &ends)) {
		rbx_connection_refuse(s, c, message->request_id,
				      RBX_REASON_OUT_OF_TURN);
		return;
	}
	rbx_user_messages_send(s, c->client);
	rbx_user_messages_tell(s, &ends);
}

static int message_put(struct rbx_server *s, uint64_t session_id,
		       const void *data, size_t length,
		       void (*done)(int status, void *user), void *user)
{
	struct rbx_client *client = rbx_client_find(s, session_id);

	if (!client || s->stopping) /* its messages may have ended already */
		return rbx_error(-ENOENT, "there is no such client any more");
	if (rbx_mailbox_put(&client->mailbox, data, (uint32_t)length, done,
			    user))
		return rbx_error(-EAGAIN,
				 "%u messages to %s wait already: send again "
				 "when one of them has ended",
				 RBX_USER_MESSAGES_MAX, client->name);
	s->messages_sent++;
	rbx_user_messages_send(s, client);
	return 0;
}

int rbx_server_message_submit(struct rbx_server *s, uint64_t client,
			      const void *data, size_t length,
			      void (*done)(int status, void *user), void *user)
{
	int err;

	if (!s || (!data && length) || length > RBX_MESSAGE_BYTES_MAX)
		return rbx_error(-EINVAL,
				 "a message of %zu bytes at %p: it needs data, "
				 "of which at most %u bytes fit",
				 length, data, RBX_MESSAGE_BYTES_MAX);
	pthread_mutex_lock(&s->lock);
	err = message_put(s, client, data, length, done, user);
	pthread_mutex_unlock(&s->lock);
	return err;
}
