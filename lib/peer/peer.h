/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer.h - a connection to one memory server, as the rest of lib/ opens it; what it is
 * good for tells client/peer.h.
 */
#ifndef RBX_LIB_PEER_H
#define RBX_LIB_PEER_H

#include "client/peer.h"

struct rbx_context;

/* Blocks. Errors as rbx_volume_open(); rbx_last_error() is set. */
int rbx_peer_open(struct rbx_context *ctx, const char *address,
		  const struct rbx_peer_events *events, struct rbx_peer **peer);

#endif
