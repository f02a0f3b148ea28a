/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * message.h - short messages, to the program that serves.
 *
 * Besides memory there is a way to talk: short messages through the session that
 * a peer has anyway, to the program that started the server and from it
 * (rdmabox/server.h, "Messages"; paper, figure 3: message handler). Longer data is
 * written to borrowed memory, and a message tells where.
 *
 * Messages of one side arrive in the order sent, each once. What was under way when
 * a connection broke is sent again after the session has been resumed, and is not
 * handed over a second time. Each message ends once:
 *	0		the handler of the other program has had it
 *	-EOPNOTSUPP	the other program has no handler (`rdmabox serve` has none)
 *	-EHOSTUNREACH	the peer is dead; the program there may have had it or not
 *	-ECANCELED	the peer was closed; the same
 *
 * Handlers and the functions that tell of an end are called from the control thread
 * of the context, one at a time. They may submit messages and requests. They must not
 * block, nor close or connect anything: that thread also keeps the sessions alive.
 */
#ifndef RDMABOX_MESSAGE_H
#define RDMABOX_MESSAGE_H

#include <rdmabox/rdmabox.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The longest message. */
#define RBX_MESSAGE_BYTES_MAX 176u

/**
 * rbx_message_submit() - sends a message, without waiting.
 * @data: copied
 * @length: at most RBX_MESSAGE_BYTES_MAX; may be 0
 * @done: called once when the message has ended, with its status; NULL: nobody wants to know
 * @user: passed to @done
 *
 * After an error nothing was sent, and @done is not called.
 *
 * Returns 0, or:
 *	-EINVAL: there is no data, or more than fits
 *	-EAGAIN: 32 messages to the peer wait already
 *	-EHOSTUNREACH: the peer is dead
 * Context: any thread, callbacks too; never blocks.
 * Paper: figure 3, message handler.
 */
int rbx_message_submit(struct rbx_peer *peer, const void *data, size_t length,
		       void (*done)(int status, void *user), void *user);

/**
 * rbx_message_send() - sends a message and waits for its end.
 * @data: copied
 * @length: at most RBX_MESSAGE_BYTES_MAX; may be 0
 *
 * While 32 messages to the peer wait already, it waits for room.
 *
 * Returns 0, or:
 *	-EINVAL: there is no data, or more than fits
 *	-EDEADLK: called in a callback
 *	-EOPNOTSUPP: the other program has no handler
 *	-EHOSTUNREACH: the peer is dead; the other program may have had the message or not
 *	-ECANCELED: the peer was closed; the other program may have had the message or not
 * Context: any thread; blocks until the message has ended, or the peer is dead.
 */
int rbx_message_send(struct rbx_peer *peer, const void *data, size_t length);

/**
 * rbx_peer_on_message() - sets the handler for messages of the program that serves.
 * @message: called with each message; its data is valid during the call
 * @user: passed to @message
 *
 * To be called once, before the first message to the server: until then the program there
 * does not know of us.
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL
 *	-EBUSY: there is a handler, or a message has come that nobody heard
 * Context: any thread, callbacks too; never blocks.
 */
int rbx_peer_on_message(struct rbx_peer *peer,
			void (*message)(struct rbx_peer *peer, const void *data,
					size_t length, void *user),
			void *user);

#ifdef __cplusplus
}
#endif

#endif
