/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * plug.h - holds back what a thread submits until it says go.
 *
 * Plugging, as in the block layer: while a poller runs the callbacks of one
 * batch of completions, what they submit is held and then combined together, so
 * that one thread that keeps 32 requests outstanding gets batches too. The plug
 * belongs to the thread. Two kinds of things wait in it: pieces that their
 * volume is to start, and fragments for a peer, one list for each. The pieces
 * go first, and most of them become fragments.
 */
#ifndef RBX_LIB_PLUG_H
#define RBX_LIB_PLUG_H

#include <stdbool.h>

#include "core/piece.h"

struct rbx_flow;
struct rbx_peer;

/* Nested pairs count; the last pull hands everything over and combines. */
void rbx_plug_push(void);
void rbx_plug_pull(void);

/* In a child of fork(): what the parent's thread held is the parent's to send. */
void rbx_plug_forget(void);

/* Hands over what is held now, plugged or not: who waits must not wait for what
 * its own plug holds back. */
void rbx_plug_flush(void);

/* Hold pieces or fragments back if the thread is plugged; false: it is not. The
 * list of pieces is empty then. */
bool rbx_plug_hold_pieces(struct rbx_flow *flow, struct rbx_piece_list *pieces);
bool rbx_plug_hold(struct rbx_peer *peer, struct rbx_fragment *first,
		   struct rbx_fragment *last);

#endif
