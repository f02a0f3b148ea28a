/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * plug.h - holds back what a thread submits until it pulls the plug.
 *
 * This is plugging as in the block layer. While a poller runs the callbacks of one batch
 * of completions, the requests that they submit are held, and then combined together. So
 * a single thread that keeps 32 requests outstanding gets batches too. The plug belongs
 * to the thread. It holds two kinds of things: pieces that their volume will start, and
 * fragments, in one list for each peer. The pieces go first; most of them become
 * fragments.
 */
#ifndef RBX_LIB_PLUG_H
#define RBX_LIB_PLUG_H

#include <stdbool.h>

#include "core/piece.h"

struct rbx_flow;
struct rbx_peer;

/* Pairs may be nested. The last pull hands over all that is held, and combines. */
void rbx_plug_push(void);
void rbx_plug_pull(void);

/* Called in a child of fork(): what the thread held is left to the parent to send. */
void rbx_plug_forget(void);

/* Hands over what is held now, plugged or not. A thread that waits has to call it first,
 * as it must not wait for something that its own plug holds back. */
void rbx_plug_flush(void);

/* Hold pieces or fragments back if the thread is plugged. False: it is not plugged. After
 * hold_pieces() returned true the list of pieces is empty. */
bool rbx_plug_hold_pieces(struct rbx_flow *flow, struct rbx_piece_list *pieces);
bool rbx_plug_hold(struct rbx_peer *peer, struct rbx_fragment *first,
		   struct rbx_fragment *last);

#endif
