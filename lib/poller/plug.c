/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * plug.c - the plug of a thread, see plug.h.
 *
 * Bounded: if a thread submits to more than HELD_MAX peers, the rest is sent at once.
 * Pieces are held for one volume; if pieces of another volume come, the held ones start.
 */
#include "lib/poller/plug.h"

#include "core/flow.h"
#include "include/rdmabox/rdmabox.h"
#include "lib/peer/internal.h"

#define HELD_MAX 64u

struct held {
	struct rbx_peer *peer;
	struct rbx_fragment *first;
	struct rbx_fragment *last;
};

struct plug {
	unsigned int depth;
	struct rbx_flow *flow; /* whose pieces are held */
	struct rbx_piece_list pieces;
	unsigned int held_count;
	struct held held[HELD_MAX];
};

/* Its thread-local model is never initial-exec, although that would save a call for each
 * access. A program that loads the library at run time has hardly any room for such
 * variables (tests/tidy/thread_storage). */
static _Thread_local struct plug plug;

void rbx_plug_push(void)
{
	plug.depth++;
}

static void start_pieces(void)
{
	if (plug.pieces.first)
		rbx_flow_start(plug.flow, &plug.pieces);
}

bool rbx_plug_hold_pieces(struct rbx_flow *flow, struct rbx_piece_list *pieces)
{
	if (plug.depth == 0)
		return false;
	if (plug.flow != flow) {
		start_pieces();
		plug.flow = flow;
	}
	rbx_piece_list_append(&plug.pieces, pieces);
	return true;
}

bool rbx_plug_hold(struct rbx_peer *peer, struct rbx_fragment *first,
		   struct rbx_fragment *last)
{
	if (plug.depth == 0)
		return false;
	for (unsigned int i = 0; i < plug.held_count; i++) {
		struct held *held = &plug.held[i];

		if (held->peer == peer) {
			held->last->node.next = &first->node;
			held->last = last;
			return true;
		}
	}
	if (plug.held_count == HELD_MAX)
		return false;
	plug.held[plug.held_count++] = (struct held){ peer, first, last };
	return true;
}

void rbx_plug_flush(void)
{
	start_pieces();
	/* Nothing is added meanwhile, as sending runs no callback. */
	for (unsigned int i = 0; i < plug.held_count; i++)
		rbx_peer_send(plug.held[i].peer, plug.held[i].first,
			      plug.held[i].last);
	plug.held_count = 0;
}

void rbx_plug_pull(void)
{
	/* The program called it once too often. */
	if (plug.depth == 0)
		return;
	/* Still plugged, so fragments that the pieces become are held as well. */
	if (plug.depth == 1)
		rbx_plug_flush();
	plug.depth--;
}

void rbx_plug_forget(void)
{
	plug = (struct plug){ 0 };
}

void rbx_plug(struct rbx_context *ctx)
{
	(void)ctx;
	rbx_plug_push();
}

void rbx_unplug(struct rbx_context *ctx)
{
	/* A child must not send what its parent held. */
	if (ctx && rbx_guard_use(ctx, "rbx_unplug"))
		return;
	rbx_plug_pull();
}
