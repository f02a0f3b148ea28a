/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer.h - opens a connection to one memory server. client/peer.h tells what it is for.
 */
#ifndef RBX_LIB_PEER_H
#define RBX_LIB_PEER_H

#include "client/peer.h"

struct rbx_context;

/* Blocks. Errors as rbx_volume_open(); sets rbx_last_error(). */
int rbx_peer_open(struct rbx_context *ctx, const char *address,
		  const struct rbx_peer_events *events, struct rbx_peer **peer);

#endif
