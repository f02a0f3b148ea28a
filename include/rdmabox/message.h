/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * message.h - short messages, to the program that serves.
 *
 * Besides memory there is a way to talk: short messages through the session that
 * a peer has anyway, to the program that started the server and from it
 * (rdmabox/server.h, "Messages"; paper, figure 3: message handler). What is
 * longer is written to borrowed memory, and a message tells where.
 *
 * Messages of one side arrive in the order sent, each once: what was under way
 * when a connection broke is sent again after the session has been resumed, and
 * not handed over a second time. Each ends once:
 *	0		the other program's handler has had it
 *	-EOPNOTSUPP	it has no handler (`rdmabox serve` has none)
 *	-EHOSTUNREACH	the peer is down: the message may have been had or not
 *	-ECANCELED	the peer was closed: the same
 *
 * Handlers and ends are called from the control thread of the context, one at a
 * time. They may submit messages and requests; they must not block, nor close or
 * connect anything, for that thread also keeps the sessions alive.
 */
#ifndef RDMABOX_MESSAGE_H
#define RDMABOX_MESSAGE_H

#include <rdmabox/rdmabox.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RBX_MESSAGE_BYTES_MAX 176u

/**
 * rbx_message_submit() - sends a message, without waiting.
 * @data: copied; @length at most RBX_MESSAGE_BYTES_MAX, may be 0.
 * @done: called once when the message has ended; NULL: nobody wants to know.
 *
 * Returns 0, -EINVAL, -EAGAIN where 32 messages wait already, -EHOSTUNREACH
 * where the peer is down: then nothing was sent.
 */
int rbx_message_submit(struct rbx_peer *peer, const void *data, size_t length,
		       void (*done)(int status, void *user), void *user);

/**
 * rbx_message_send() - sends a message and waits for its end.
 *
 * Returns 0 or what it ended with, -EINVAL, -EDEADLK in a callback. Blocks, at
 * most until the peer counts as down.
 */
int rbx_message_send(struct rbx_peer *peer, const void *data, size_t length);

/**
 * rbx_peer_on_message() - says who hears the messages of the server's program.
 * @message: its message handler; @data is valid during the call.
 *
 * To be called once, before the first message to the server: till then the
 * server's program does not know of us. Returns 0, -EINVAL, -EBUSY where there
 * is a handler, or a message has come that nobody heard.
 */
int rbx_peer_on_message(struct rbx_peer *peer,
			void (*message)(struct rbx_peer *peer, const void *data,
					size_t length, void *user),
			void *user);

#ifdef __cplusplus
}
#endif

#endif
