/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verbs.c - plain verbs beside RDMAbox, see include/rdmabox/verbs.h.
 *
 * A link is a data queue pair of the peer's session like those of the peer: it
 * is attached with the same proof, and the server ends it when it ends them. The
 * fabric makes it, the program uses it, and nothing here looks at it again.
 */
#include "include/rdmabox/verbs.h"

#include <stdlib.h>
#include <string.h>

#include "lib/peer/internal.h"

struct rbx_verbs_link {
	struct rbx_context *ctx;
	struct rbx_qp *qp;
};

static int check(const struct rbx_peer *peer)
{
	const struct rbx_fabric_ops *ops = peer->ctx->device->ops;

	if (ops->native_device)
		return 0;
	return rbx_error(-ENOTSUP,
			 "the %s fabric has no verbs: open the "
			 "context with fabric=verbs",
			 ops->name);
}

int rbx_peer_verbs(struct rbx_peer *peer, struct rbx_verbs *verbs)
{
	struct rbx_native_device native;
	struct rbx_verbs all;
	int err;

	if (!peer || !verbs || !verbs->size_bytes)
		return rbx_error(-EINVAL,
				 "a peer and verbs with its size must be given");
	err = check(peer);
	if (err)
		return err;
	native = peer->ctx->device->ops->native_device(peer->ctx->device);
	all = (struct rbx_verbs){
		.size_bytes = RBX_MIN(verbs->size_bytes, sizeof(all)),
		.context = native.context,
		.pd = native.pd,
		.port = native.port,
	};
	memcpy(verbs, &all, all.size_bytes);
	return 0;
}

int rbx_verbs_link_open(struct rbx_peer *peer, struct ibv_qp_init_attr *init,
			struct rbx_verbs_link **out)
{
	const struct rbx_qp_init qp_init = { .native = init };
	struct rbx_verbs_link *link;
	int err;

	if (!peer || !init || !out)
		return rbx_error(-EINVAL, "a link needs a peer and a "
					  "description of the queue pair");
	err = check(peer);
	if (!err)
		err = rbx_guard_wait(peer->ctx, "rbx_verbs_link_open");
	if (err)
		return err;
	link = calloc(1, sizeof(*link));
	if (!link)
		return rbx_error(-ENOMEM, "cannot allocate a link");
	err = rbx_session_connect_qp(peer->session, &qp_init, &link->qp);
	if (err) {
		free(link);
		return err;
	}
	link->ctx = peer->ctx;
	RBX_FETCH_ADD(&link->ctx->links_count, 1);
	*out = link;
	return 0;
}

struct ibv_qp *rbx_verbs_link_qp(const struct rbx_verbs_link *link)
{
	return link->qp->device->ops->native_qp(link->qp);
}

void rbx_verbs_link_close(struct rbx_verbs_link *link)
{
	if (!link || rbx_guard_use(link->ctx, "rbx_verbs_link_close"))
		return;
	link->qp->device->ops->destroy_qp(link->qp);
	RBX_FETCH_ADD(&link->ctx->links_count, (uint32_t)-1);
	free(link);
}
