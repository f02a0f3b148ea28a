/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remote.c - memory of one server without a volume: connect, borrow, submit.
 *
 * This is for programs that place and replicate data themselves. A request is split into
 * fragments, each a piece of its own. They go to the peer and are joined at the end
 * (join.h). Nothing orders overlapping writes, and there is no replica.
 *
 * A server that runs short takes memory back. It may lend it to us again before we have
 * noticed. Then the new loan has the slab, or the address and key, of the old loan, and a
 * write to the old loan would change the new one. So the old loan ends first. If a
 * request to it is still outstanding, the new loan is given back, and another one is
 * asked for when that request has ended.
 *
 * volume/submit.c tells what is in the reserved words of a request.
 */
#include <stdlib.h>
#include <unistd.h>

#include "core/loan.h"
#include "core/status.h"
#include "include/rdmabox/verbs.h"
#include "lib/buffers/segments.h"
#include "lib/join.h"
#include "lib/malformed.h"
#include "lib/outstanding.h"
#include "lib/peer/internal.h"
#include "lib/poller/set.h"

struct rbx_remote {
	struct rbx_peer *peer;
	struct rbx_loan loan;
	uint64_t size_bytes;
	struct rbx_remote *next; /* in the peer's list, guarded by remotes_lock */
	/* Atomic: the server has lent this memory anew. It is set before the pool is
	 * checked for being idle, and read after a piece was taken. So one of the two
	 * sides notices. */
	bool is_over;
	struct rbx_piece_pool pool;
};

int rbx_peer_connect(struct rbx_context *ctx, struct rbx_peer **peer,
		     const char *server)
{
	int err;

	if (!ctx || !peer || !server)
		return rbx_error(-EINVAL, "a peer needs a context and an address");
	err = rbx_guard_wait(ctx, "rbx_peer_connect");
	return err ? err : rbx_peer_open(ctx, server, NULL, peer);
}

static struct rbx_fragment *fragments_done(struct rbx_fragment *list)
{
	while (list && list->done == fragments_done) {
		struct rbx_remote *remote = rbx_part_of(list)->piece->owner;
		struct rbx_piece_list ended = { 0 };

		do {
			struct rbx_piece *piece = rbx_part_of(list)->piece;
			struct rbx_fragment *next = rbx_fragment_next(list);

			piece->status = list->status;
			rbx_piece_list_add(&ended, piece);
			list = next;
		} while (list && list->done == fragments_done &&
			 rbx_part_of(list)->piece->owner == remote);
		(void)rbx_join(remote->peer->ctx, &remote->pool, &ended);
	}
	return list;
}

/* Gives completions time. If the program polls, this polls. */
static void let_complete(struct rbx_context *ctx)
{
	if (ctx->options.pollers == 0)
		(void)rbx_poll(ctx);
	usleep(100);
}

/* Gives a loan back. Nobody else knows of this loan. So if the connection is broken, it
 * waits until the connection is restored or the peer is dead, which ends the loan. The
 * wait has a limit, as a server may be there and never answer; then the end of the
 * session gives it back. */
static void give_back(struct rbx_remote *remote)
{
	struct rbx_peer *peer = remote->peer;
	uint64_t until_ns = rbx_now_ns() + RBX_GIVE_BACK_TIMES *
						   peer->ctx->options.peer_timeout_ms *
						   1000000ull;

	while (rbx_status_is_away(rbx_peer_unmap(peer, &remote->loan)) &&
	       RBX_LOAD_ACQUIRE(&peer->channel.state) != RBX_CHANNEL_DEAD &&
	       rbx_now_ns() < until_ns)
		let_complete(peer->ctx);
}

/* ---- Borrowing and giving back ----------------------------------------------*/

/* Ends older loans whose memory the server has lent anew by this one. Returns whether
 * requests to them are still outstanding. */
static bool twins_end_locked(struct rbx_peer *peer,
			     const struct rbx_remote *remote)
{
	struct rbx_remote *older;
	bool is_in_use = false;

	for (older = rbx_user_peer(peer)->remotes; older; older = older->next) {
		if (!rbx_loan_is_twin(&older->loan, &remote->loan,
				      rbx_peer_slab_bytes(peer)))
			continue;
		(void)RBX_EXCHANGE(&older->is_over, true);
		is_in_use |= !rbx_piece_pool_is_idle(&older->pool);
	}
	return is_in_use;
}

/* Adds it to the peer's list if it can be used: nothing is outstanding to a twin. */
static bool enter(struct rbx_peer *peer, struct rbx_remote *remote)
{
	struct rbx_user_peer *user = rbx_user_peer(peer);
	bool is_in_use;

	pthread_mutex_lock(&user->remotes_lock);
	is_in_use = twins_end_locked(peer, remote);
	if (!is_in_use) {
		remote->next = user->remotes;
		user->remotes = remote;
	}
	pthread_mutex_unlock(&user->remotes_lock);
	return !is_in_use;
}

static void leave(struct rbx_peer *peer, struct rbx_remote *remote)
{
	struct rbx_remote **at = &rbx_user_peer(peer)->remotes;

	pthread_mutex_lock(&rbx_user_peer(peer)->remotes_lock);
	while (*at != remote) /* bounded: it is there */
		at = &(*at)->next;
	*at = remote->next;
	pthread_mutex_unlock(&rbx_user_peer(peer)->remotes_lock);
}

static bool twins_in_use(struct rbx_peer *peer, const struct rbx_remote *remote)
{
	bool is_in_use;

	pthread_mutex_lock(&rbx_user_peer(peer)->remotes_lock);
	is_in_use = twins_end_locked(peer, remote);
	pthread_mutex_unlock(&rbx_user_peer(peer)->remotes_lock);
	return is_in_use;
}

/* Borrows memory that can be used at once. A request to a key that has ended breaks the
 * connection. So if there was a twin, this asks again until the connection is restored. */
static int map(struct rbx_peer *peer, struct rbx_remote *remote)
{
	uint64_t end_ns = rbx_after_ms(peer->ctx->options.peer_timeout_ms);
	bool had_twin = false;
	int err;

	rbx_plug_flush(); /* we may wait for what the plug holds */
	for (;;) {
		err = rbx_peer_map(peer, &remote->loan);
		if (had_twin && rbx_status_is_away(err) &&
		    rbx_now_ns() < end_ns) {
			let_complete(peer->ctx);
			continue;
		}
		if (err || enter(peer, remote))
			return err;
		had_twin = true;
		give_back(remote);
		while (twins_in_use(peer, remote)) {
			if (rbx_now_ns() > end_ns)
				return rbx_error(-ETIMEDOUT,
						 "%s took memory back and lends it again, but requests to it are still outstanding",
						 rbx_peer_name(peer));
			let_complete(peer->ctx);
		}
	}
}

int rbx_borrow(struct rbx_peer *peer, struct rbx_remote **out, uint64_t size)
{
	struct rbx_remote *remote;
	uint32_t count;
	void *memory;
	int err;

	if (!peer || !out)
		return rbx_error(-EINVAL, "a peer and a pointer for the memory must be given");
	err = rbx_guard_wait(peer->ctx, "rbx_borrow");
	if (err)
		return err;
	count = peer->ctx->options.requests_max;
	if (size == 0 || size > rbx_peer_slab_bytes(peer))
		return rbx_error(-EINVAL, "cannot borrow %llu bytes: %s lends 1 to %llu at a time",
				 (unsigned long long)size,
				 rbx_peer_name(peer),
				 (unsigned long long)rbx_peer_slab_bytes(peer));
	remote = calloc(1, sizeof(*remote));
	memory = calloc(1, rbx_piece_pool_size(count, 1, 0));
	if (!remote || !memory) {
		err = rbx_error(-ENOMEM, "cannot allocate %u fragments", count);
		goto out_free;
	}
	remote->peer = peer;
	remote->size_bytes = size;
	rbx_piece_pool_init(&remote->pool, memory, count, 1, 0, remote,
			    fragments_done);
	err = map(peer, remote);
	if (err)
		goto out_free;
	RBX_FETCH_ADD(&rbx_user_peer(peer)->remotes_count, 1);
	*out = remote;
	return 0;

out_free:
	free(memory);
	free(remote);
	return err;
}

void rbx_remote_key(const struct rbx_remote *remote, struct rbx_remote_key *key)
{
	*key = (struct rbx_remote_key){
		.address = remote->loan.remote_addr,
		.length_bytes = remote->size_bytes,
		.rkey = remote->loan.rkey,
	};
}

int rbx_return(struct rbx_remote *remote)
{
	struct rbx_user_peer *user;
	struct rbx_context *ctx;
	int err;

	if (!remote)
		return 0;
	user = rbx_user_peer(remote->peer);
	ctx = remote->peer->ctx;
	err = rbx_guard_wait(ctx, "rbx_return");
	if (err)
		return err;
	rbx_plug_flush();
	while (!rbx_piece_pool_is_idle(&remote->pool))
		let_complete(ctx);
	/* The last completion may still be in a poller's hands. */
	rbx_pollers_visit_all(ctx);
	leave(remote->peer, remote);
	give_back(remote);
	RBX_FETCH_ADD(&user->remotes_count, (uint32_t)-1);
	free(remote->pool.memory);
	free(remote);
	return 0;
}

/* ---- Requests ------------------------------------------------------------------*/

static uint32_t fragments_of(const struct rbx_remote *remote,
			     const struct rbx_request *request)
{
	uint32_t fragment_bytes = remote->peer->ctx->options.fragment_bytes;

	if (rbx_buffers_are_many(request))
		return rbx_segments_pieces(request, fragment_bytes);
	return (uint32_t)(((uint64_t)request->length_bytes + fragment_bytes -
			   1) / fragment_bytes);
}

#define REQUEST_FLAGS (RBX_FENCE | RBX_NO_MERGE | RBX_URGENT | RBX_NO_RESEND)

static int check(const struct rbx_remote *remote, struct rbx_request *request)
{
	if (rbx_request_is_malformed(request, REQUEST_FLAGS))
		return rbx_request_malformed(request, REQUEST_FLAGS);
	if (rbx_request_is_outstanding(request))
		return rbx_request_busy();
	if (request->length_bytes == 0)
		return rbx_error(-EINVAL, "a request is at least 1 byte long");
	if (request->offset > remote->size_bytes ||
	    request->length_bytes > remote->size_bytes - request->offset)
		return rbx_error(-EINVAL,
				 "%u bytes at %llu are beyond the %llu bytes "
				 "that were borrowed",
				 request->length_bytes,
				 (unsigned long long)request->offset,
				 (unsigned long long)remote->size_bytes);
	return rbx_buffers_check(request);
}

RBX_STATIC_ASSERT((int)RBX_NO_RESEND == RBX_FRAGMENT_NO_RESEND, "same bit");

/* Fills in a fragment of what is left of a request, but for its memory; returns its
 * length, which is at most max. */
static uint32_t aim(const struct rbx_remote *remote,
		    struct rbx_request *request, uint32_t done_bytes,
		    uint32_t max_bytes, struct rbx_piece *piece)
{
	struct rbx_fragment *fragment = &piece->parts[0].fragment;

	piece->user = request;
	fragment->direction = request->op == RBX_READ ? RBX_DIRECTION_READ :
							RBX_DIRECTION_WRITE;
	fragment->flags = request->flags;
	/* A failure of another one that it was merged with would end it. */
	if (request->flags & RBX_NO_RESEND)
		fragment->flags |= RBX_FRAGMENT_ALONE;
	fragment->retries_count = 0;
	fragment->flushes_count = 0;
	fragment->rkey = remote->loan.rkey;
	fragment->remote_addr =
		remote->loan.remote_addr + request->offset + done_bytes;
	fragment->length_bytes = RBX_MIN(
		max_bytes, remote->peer->ctx->options.fragment_bytes);
	fragment->status = 0;
	fragment->node.next = NULL;
	return fragment->length_bytes;
}

/* Where the next fragment of a request has its memory; up to its end, or to that of its
 * segment. */
static uint32_t aim_at_memory(const struct rbx_remote *remote,
			      struct rbx_request *request, uint32_t done_bytes,
			      struct rbx_segment_walk *walk,
			      struct rbx_piece *piece)
{
	struct rbx_fragment *fragment = &piece->parts[0].fragment;
	uint32_t length_bytes;

	if (!rbx_buffers_are_many(request)) {
		length_bytes = aim(remote, request, done_bytes,
				   request->length_bytes - done_bytes, piece);
		fragment->local_addr = (uintptr_t)request->buf + done_bytes;
		fragment->lkey = rbx_buffers_lkey(request, &fragment->flags);
		return length_bytes;
	}
	length_bytes = aim(remote, request, done_bytes, rbx_segment_left(walk),
			   piece);
	fragment->local_addr = rbx_segment_addr(walk);
	fragment->lkey = rbx_segment_lkey(walk, &fragment->flags);
	rbx_segment_skip(walk, length_bytes);
	return length_bytes;
}

/* Splits a request into pieces of the list, linked behind *last. */
static void split(const struct rbx_remote *remote, struct rbx_request *request,
		  struct rbx_piece_list *pieces, struct rbx_fragment **first,
		  struct rbx_fragment **last)
{
	struct rbx_segment_walk walk = { 0 };
	uint32_t done_bytes = 0;

	request->status = 0;
	rbx_request_stamp(request);
	request->reserved[1] = fragments_of(remote, request);
	if (rbx_buffers_are_many(request))
		rbx_segment_first(&walk, request);
	while (done_bytes < request->length_bytes) {
		struct rbx_piece *piece = rbx_piece_list_take(pieces);
		struct rbx_fragment *fragment = &piece->parts[0].fragment;

		done_bytes += aim_at_memory(remote, request, done_bytes, &walk,
					    piece);
		if (!*first)
			*first = fragment;
		else
			(*last)->node.next = &fragment->node;
		*last = fragment;
	}
}

/* Checks and marks all; counts the pieces they need. After a failure none is
 * marked. */
static int check_all(const struct rbx_remote *remote,
		     struct rbx_request *const requests[], unsigned int count,
		     uint32_t *pieces_count)
{
	uint64_t needed = 0;
	unsigned int i;
	int err = 0;

	for (i = 0; i < count; i++) {
		err = check(remote, requests[i]);
		if (err)
			goto out_unmark;
		rbx_request_begin(requests[i]);
		needed += fragments_of(remote, requests[i]);
	}
	if (needed > remote->pool.count)
		err = rbx_error(-EINVAL,
				"requests of %llu fragments in one call: %u "
				"may be outstanding; raise requests_max or "
				"submit less",
				(unsigned long long)needed, remote->pool.count);
	*pieces_count = (uint32_t)needed;
out_unmark:
	if (err)
		rbx_requests_end(requests, i);
	return err;
}

/* Requests are cut where regions of the cache meet, too, which takes more pieces than were counted.
 * If they are not to be had, the requests are registered as wholes. */
static void regions_cut(struct rbx_remote *remote, struct rbx_request *const requests[],
			unsigned int count, uint32_t has, struct rbx_piece_list *pieces)
{
	struct rbx_context *ctx = remote->peer->ctx;
	uint64_t now = 0;
	unsigned int i;

	for (i = 0; ctx->buffers.cache && i < count; i++)
		now += fragments_of(remote, requests[i]);
	if (now <= has ||
	    (now <= remote->pool.count &&
	     !rbx_piece_pool_take(&remote->pool, (uint32_t)now - has, pieces)))
		return;
	for (i = 0; i < count; i++)
		if (rbx_buffers_keys(requests[i]))
			rbx_buffers_register_whole(ctx, requests[i]);
}

static int taken_back(const struct rbx_remote *remote)
{
	if (!RBX_LOAD_ORDERED(&remote->is_over))
		return 0;
	return rbx_error(-EACCES, "%s took this memory back and has lent it again; rbx_return() it",
			 rbx_peer_name(remote->peer));
}

int rbx_remote_submit(struct rbx_remote *remote,
		      struct rbx_request *const requests[], unsigned int count)
{
	struct rbx_fragment *first = NULL, *last = NULL;
	struct rbx_piece_list pieces = { 0 };
	uint32_t needed = 0;
	int err;

	if (!remote || !requests || count == 0 || count > RBX_SUBMIT_MAX)
		return rbx_error(-EINVAL, "submit takes borrowed memory and 1 to %u requests",
				 RBX_SUBMIT_MAX);
	err = rbx_guard_use(remote->peer->ctx, "rbx_remote_submit");
	if (!err)
		err = check_all(remote, requests, count, &needed);
	if (err)
		return err;
	if (rbx_piece_pool_take(&remote->pool, needed, &pieces)) {
		rbx_requests_end(requests, count);
		return rbx_error(-EAGAIN,
				 "too many requests are outstanding: submit "
				 "again after a completion, or raise "
				 "requests_max");
	}
	err = taken_back(remote);
	if (!err)
		err = rbx_buffers_register(remote->peer->ctx, requests, count);
	if (err) {
		(void)rbx_piece_pool_give(&remote->pool, &pieces);
		rbx_requests_end(requests, count);
		return err;
	}
	regions_cut(remote, requests, count, needed, &pieces);
	for (unsigned int i = 0; i < count; i++)
		split(remote, requests[i], &pieces, &first, &last);
	rbx_peer_submit(remote->peer, first, last);
	return 0;
}
