/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * set.c - how many pollers there are, and which queue pairs each serves.
 *
 * If the option is a number, all pollers start with the context. A new peer, with all its
 * queue pairs, goes to the poller that serves the fewest queue pairs. If there is one
 * poller for each peer or each queue pair, the first starts with the context and the
 * others as peers come. A poller that serves nobody any more stays for the next peer. So
 * no poller ends while the context is open, and a thread needs no lock to walk through
 * them.
 */
#include "lib/poller/set.h"

#include "lib/peer/internal.h"
#include "lib/poller/polling.h"

static bool is_by_number(const struct rbx_context *ctx)
{
	return ctx->options.pollers <= RBX_POLLERS_MAX;
}

/* The queue pairs that one poller may serve. */
static uint32_t qps_max(const struct rbx_context *ctx)
{
	if (ctx->options.pollers == RBX_POLLERS_QUEUE_PAIR)
		return 1;
	return ctx->options.pollers == RBX_POLLERS_PEER ?
		       ctx->options.queue_pairs :
		       RBX_POLLER_QPS_MAX;
}

static int add_poller(struct rbx_context *ctx)
{
	uint32_t count = ctx->poller_count;
	int err = rbx_poller_create(ctx, RBX_MIN(qps_max(ctx), RBX_CQ_QPS),
				    ctx->options.pollers != 0,
				    &ctx->pollers[count]);

	/* Pairs with the loads in rbx_pollers_visit_all() and elsewhere. */
	if (!err)
		RBX_STORE_RELEASE(&ctx->poller_count, count + 1);
	return err;
}

int rbx_pollers_open(struct rbx_context *ctx)
{
	struct rbx_polling polling = rbx_polling_of(&ctx->options);
	uint32_t count = 1;
	int err = 0;

	if (polling.shared_count != 0)
		count = polling.shared_count;
	else if (is_by_number(ctx) && ctx->options.pollers != 0)
		count = ctx->options.pollers;
	while (!err && ctx->poller_count < count)
		err = add_poller(ctx);
	return err;
}

void rbx_pollers_close(struct rbx_context *ctx)
{
	while (ctx->poller_count > 0)
		rbx_poller_destroy(ctx->pollers[--ctx->poller_count]);
}

/* The poller that serves the fewest queue pairs. */
static struct rbx_poller *least(struct rbx_context *ctx)
{
	struct rbx_poller *best = ctx->pollers[0];

	for (uint32_t i = 1; i < ctx->poller_count; i++) {
		if (ctx->pollers[i]->qps_count < best->qps_count)
			best = ctx->pollers[i];
	}
	return best;
}

static int no_room(void)
{
	return rbx_error(-ENOSPC,
			 "too many queue pairs: a context has at most %u "
			 "pollers, and %u queue pairs for each that serves "
			 "several peers",
			 RBX_POLLER_SLOTS, RBX_POLLER_QPS_MAX);
}

/* Finds a poller with room for so many queue pairs of one peer. */
static int find(struct rbx_context *ctx, uint32_t qps_count,
		struct rbx_poller **poller)
{
	int err = 0;

	*poller = least(ctx);
	if (is_by_number(ctx))
		return (*poller)->qps_count + qps_count > qps_max(ctx) ?
			       no_room() :
			       0;
	if ((*poller)->qps_count == 0)
		return 0;
	if (ctx->poller_count == RBX_POLLER_SLOTS)
		return no_room();
	err = add_poller(ctx);
	if (!err)
		*poller = ctx->pollers[ctx->poller_count - 1];
	return err;
}

int rbx_pollers_assign_locked(struct rbx_context *ctx, struct rbx_peer *peer)
{
	struct rbx_user_peer *user = rbx_user_peer(peer);
	uint32_t together = RBX_MIN(user->qps_count, qps_max(ctx));
	struct rbx_poller *poller = NULL;

	for (uint32_t i = 0; i < user->qps_count; i++) {
		struct rbx_peer_qp *pair = &user->qps[i];
		int err = i % together ? 0 : find(ctx, together, &poller);

		if (!err)
			err = rbx_poller_qp_take_locked(poller,
							&pair->cq_index);
		if (err) {
			rbx_pollers_release_locked(peer);
			return err;
		}
		pair->poller = poller;
	}
	peer->poller = user->qps[0].poller;
	return 0;
}

void rbx_pollers_release_locked(struct rbx_peer *peer)
{
	struct rbx_user_peer *user = rbx_user_peer(peer);

	for (uint32_t i = 0; i < user->qps_count; i++) {
		struct rbx_peer_qp *pair = &user->qps[i];

		if (pair->poller)
			rbx_poller_qp_give_locked(pair->poller, pair->cq_index);
		pair->poller = NULL;
	}
}

void rbx_pollers_follow_locked(struct rbx_context *ctx)
{
	struct rbx_polling polling = rbx_polling_of(&ctx->options);

	for (uint32_t i = 0; i < ctx->poller_count; i++) {
		rbx_poller_visit(ctx->pollers[i]);
		rbx_poll_policy_init(&ctx->pollers[i]->round.policy, &polling.rule);
		rbx_poller_leave(ctx->pollers[i]);
	}
}

void rbx_pollers_visit_all(struct rbx_context *ctx)
{
	uint32_t count = RBX_LOAD_ACQUIRE(&ctx->poller_count);

	for (uint32_t i = 0; i < count; i++) {
		rbx_poller_visit(ctx->pollers[i]);
		rbx_poller_leave(ctx->pollers[i]);
	}
}
