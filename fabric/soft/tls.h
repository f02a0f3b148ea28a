/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tls.h - a connection under TLS 1.3, between the queue pair and its socket.
 *
 * A device has a soft_tls_keys, each connection a soft_tls. The connection never blocks: each
 * call does what the socket allows. The caller serialises the calls of one connection (the
 * lock of its qp, or nobody else knows it yet), and owns the socket.
 *
 *   open, handshake until it does not return -EAGAIN, then bytes: hello messages; stream,
 *   and after that send, push and receive as often as wanted; free
 *
 * Until soft_tls_stream() no byte is read from the socket before it is needed, so whoever
 * waits for the socket misses nothing. From then on each receive() decrypts all that it has
 * read, to the last complete record: nothing is hidden from poll() then, either.
 */
#ifndef SOFT_TLS_H
#define SOFT_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "../tls_key.h"

struct soft_tls;
struct soft_tls_keys;

/* The first byte of what a peer under TLS says: the type of a handshake record. */
#define SOFT_TLS_FIRST_BYTE 22

/* 0; -ENOMEM; -EOPNOTSUPP: the TLS library of this machine does not want to. */
int soft_tls_keys_open(struct soft_tls_keys **keys, const struct rbx_tls_key *key);
void soft_tls_keys_close(struct soft_tls_keys *keys); /* NULL is allowed */
int soft_tls_keys_add(struct soft_tls_keys *keys, const struct rbx_tls_key *key);

/* Borrows keys and the socket. NULL: no memory. */
struct soft_tls *soft_tls_open(struct soft_tls_keys *keys, int fd, bool accepts);
void soft_tls_free(struct soft_tls *tls); /* NULL is allowed */

/*
 * A step of the handshake. 0: done, both sides have proved the key; -EAGAIN: again when the
 * socket is readable; -EACCES: the sides have different keys; -ECONNRESET: the peer has
 * closed the connection; -EPROTO: something else is wrong; or what the socket says.
 */
int soft_tls_handshake(struct soft_tls *tls);

/* One message, which becomes a record of its own. */
int soft_tls_send_message(struct soft_tls *tls, const void *bytes, size_t length_bytes);
/* As recv(). *more: the record has more bytes. */
ssize_t soft_tls_receive_message(struct soft_tls *tls, void *bytes, size_t max_bytes,
				 bool *more);
/* Messages are over. */
void soft_tls_stream(struct soft_tls *tls);

/*
 * Encrypts the first bytes of these pieces, and sends what the socket takes. Called when
 * nothing is unsent. Returns how many bytes were encrypted, which is all of them or
 * SOFT_TLS_SEND_BYTES; -EFAULT: none, since a piece is no memory; -EPROTO: TLS failed, and
 * the socket was shut down; or what the socket says.
 */
ssize_t soft_tls_send(struct soft_tls *tls, const struct iovec *pieces, size_t count);
/* Sends what is encrypted. 0; -EAGAIN: the socket is full; or what the socket says. */
int soft_tls_push(struct soft_tls *tls);
size_t soft_tls_unsent(const struct soft_tls *tls);

/*
 * Reads the socket once, and returns all that can be decrypted, for which there is room:
 * SOFT_TLS_READ_BYTES and a record. -EAGAIN: nothing; 0: the end; -EBADMSG: these are not
 * the bytes that the peer has sent; or what the socket says. *more: the socket may have more.
 */
ssize_t soft_tls_receive(struct soft_tls *tls, void *to, size_t max_bytes, bool *more);

#endif
