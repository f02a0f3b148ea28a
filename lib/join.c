/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * join.c - joins ended pieces into ended requests, see join.h.
 *
 * It does three steps for all pieces of a poll together. It finds the requests that have
 * ended, puts the pieces back with one exchange, and only then calls back. So a callback
 * finds the room that its request has left.
 *
 * The status of a request is that of its first piece that failed.
 */
#include "lib/join.h"

/* reserved[1]: first the number of pieces that have not ended, later the link of a list. */
#define PIECES_LEFT(request) ((request)->reserved[1])
#define LINK(request) ((request)->reserved[1])

/* Whether it was the last piece of its request. */
static bool piece_count(const struct rbx_piece *piece)
{
	struct rbx_request *request = piece->user;
	int32_t none = 0;

	if (piece->status)
		(void)RBX_COMPARE_EXCHANGE(&request->status, &none,
					   piece->status);
	/* The last piece needs no locked subtraction. */
	return RBX_LOAD_ACQUIRE(&PIECES_LEFT(request)) == 1 ||
	       RBX_FETCH_ADD(&PIECES_LEFT(request), -1) == 1;
}

/* Requests in the order of their pieces. */
static struct rbx_request *ended_requests(const struct rbx_piece_list *ended)
{
	struct rbx_request *first = NULL, *last = NULL, *request;
	struct rbx_node *node;

	for (node = ended->first; node; node = node->next) {
		if (!piece_count(rbx_piece_of(node)))
			continue;
		request = rbx_piece_of(node)->user;
		LINK(request) = 0;
		if (first)
			LINK(last) = (uintptr_t)request;
		else
			first = request;
		last = request;
	}
	return first;
}

bool rbx_join(struct rbx_context *ctx, struct rbx_piece_pool *pool,
	      struct rbx_piece_list *ended)
{
	struct rbx_request *request = ended_requests(ended);
	bool fence_waits = rbx_piece_pool_give(pool, ended);

	rbx_context_made_room(ctx);
	while (request) {
		struct rbx_request *next =
			(struct rbx_request *)(uintptr_t)LINK(request);

		rbx_context_complete(ctx, request);
		request = next;
	}
	return fence_waits;
}
