/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verbs.c - plain verbs to a peer's server.
 *
 * A link is a data queue pair of the session, like those of the peer. It is attached with
 * the same proof, and the server ends it when it ends them. Its owner posts and polls as
 * it likes. So the only thing that is reported here is its end: by the connection
 * manager, or because the device is being removed. The removal waits until the link is
 * closed.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "kernel/api_peer.h"
#include "kernel/lib/peer/peer.h"

struct rbx_verbs_link {
	struct rbx_ib_conn conn;
	struct rbx_context *ctx; /* held */
	struct rbx_device_watch watch;
	void (*ended)(void *user);
	void *user;
	bool is_over; /* atomic: ended() was called */
};

static void tell(struct rbx_verbs_link *link)
{
	if (!RBX_EXCHANGE(&link->is_over, true) && link->ended)
		link->ended(link->user);
}

static void link_ended(struct rbx_ib_conn *conn)
{
	tell(container_of(conn, struct rbx_verbs_link, conn));
}

static void device_goes(struct rbx_device_watch *watch)
{
	struct rbx_verbs_link *link =
		container_of(watch, struct rbx_verbs_link, watch);

	rbx_ib_conn_disconnect(&link->conn);
	tell(link);
}

struct ib_pd *rbx_peer_pd(const struct rbx_peer *peer)
{
	return peer->ctx->pd;
}
EXPORT_SYMBOL_GPL(rbx_peer_pd);

/* Completions that have not come back may be in the owner's completion queues and refer
 * to this memory. So it is not freed. */
static void link_end(struct rbx_verbs_link *link)
{
	int err = rbx_ib_conn_drain(&link->conn, RBX_IB_DRAIN_MS);

	rbx_ib_conn_destroy(&link->conn);
	rbx_context_release(link->ctx);
	if (!err)
		kfree(link);
}

int rbx_verbs_link_open(struct rbx_peer *peer, struct ib_qp_init_attr *init,
			void (*ended)(void *user), void *user,
			struct rbx_verbs_link **out)
{
	struct rbx_verbs_link *link = kzalloc(sizeof(*link), GFP_KERNEL);
	int err;

	if (!link)
		return -ENOMEM;
	link->ctx = peer->ctx;
	link->ended = ended;
	link->user = user;
	link->watch.gone = device_goes;
	err = rbx_context_hold(link->ctx, NULL);
	if (err)
		goto out_free;
	err = rbx_session_connect_qp(peer->session, &link->conn, init,
				     link_ended, 0);
	if (err && link->conn.id && link->conn.id->qp) {
		link_end(link); /* its drain completes in the owner's queues */
		return err;
	}
	if (err)
		goto out_destroy;
	err = rbx_context_watch(link->ctx, &link->watch);
	if (err)
		link_end(link);
	else
		*out = link;
	return err;

out_destroy:
	rbx_ib_conn_destroy(&link->conn);
	rbx_context_release(link->ctx);
out_free:
	kfree(link);
	return err;
}
EXPORT_SYMBOL_GPL(rbx_verbs_link_open);

struct ib_qp *rbx_verbs_link_qp(const struct rbx_verbs_link *link)
{
	return link->conn.id->qp;
}
EXPORT_SYMBOL_GPL(rbx_verbs_link_qp);

void rbx_verbs_link_close(struct rbx_verbs_link *link)
{
	rbx_context_unwatch(link->ctx, &link->watch);
	link_end(link);
}
EXPORT_SYMBOL_GPL(rbx_verbs_link_close);
