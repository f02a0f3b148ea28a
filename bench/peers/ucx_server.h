/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The server of both UCX peers. */
#ifndef UCX_SERVER_H
#define UCX_SERVER_H

#include <stddef.h>

#include "peer.h"

/* Lends @memory to the client behind the socket @fd until it leaves. 0 or -errno. */
typedef int (*ucx_serve_client_fn)(int fd, void *memory, size_t size_bytes);

/* Calls @serve_client in a child for one client after another until peer_stop. */
int ucx_serve(const struct peer_options *options, ucx_serve_client_fn serve_client);

#endif
