/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The plain TCP socket beside a UCX connection. */
#ifndef UCX_SOCKET_H
#define UCX_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

#include "peer.h"

/* The description of the server's memory; both ends are the same program. */
struct lent_memory {
	uint64_t address;
	uint64_t size_bytes;
};

/* Both return a descriptor, which the caller closes, or -errno. */
int socket_listen(const struct peer_options *options);
int socket_connect(const struct peer_options *options);

/* Sends all of @len bytes, or returns -errno. */
int socket_send(int fd, const void *data, size_t len);
int socket_receive(int fd, void *data, size_t len);

/*
 * Sends or receives an address or a key of UCX, of any length. The receiver has room for
 * @size_bytes; more than that is -EPROTO.
 */
int socket_send_blob(int fd, const void *blob, size_t len);
int socket_receive_blob(int fd, void *blob, size_t size_bytes);

/* True when the other side has closed or broken the connection. Never blocks. */
bool socket_has_ended(int fd);

#endif
