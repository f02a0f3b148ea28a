/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * native.c - queue pairs that a program uses with libibverbs, beside ours.
 *
 * They are made and connected as ours are, in the same protection domain, so all memory keys
 * of the device are valid on them. Their owner posts and polls, on completion queues of its
 * own: we know only the connection, and nothing of what is posted. Its end is like any other:
 * the queue pair goes to error, and the owner's poll gets what is posted back as flushed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/verbs/explain.h"
#include "fabric/verbs/verbs.h"

struct rbx_native_device rbx_verbs_native_device(struct rbx_device *rbx_device)
{
	const struct rbx_verbs_device *device = rbx_verbs_device(rbx_device);

	return (struct rbx_native_device){
		.context = device->verbs,
		.pd = device->pd,
		.port = device->port,
	};
}

struct ibv_qp *rbx_verbs_native_qp(struct rbx_qp *qp)
{
	return rbx_verbs_qp(qp)->ibv;
}

static int attr_check(const struct rbx_verbs_device *device,
		      const struct ibv_qp_init_attr *attr, char *error)
{
	if (attr->qp_type != IBV_QPT_RC)
		return rbx_verbs_explain(error, -EINVAL,
			"a queue pair of type %d: the server takes reliable "
			"connections, IBV_QPT_RC", (int)attr->qp_type);
	if (!attr->send_cq || !attr->recv_cq ||
	    attr->send_cq->context != device->verbs ||
	    attr->recv_cq->context != device->verbs)
		return rbx_verbs_explain(error, -EINVAL,
			"a queue pair needs completion queues of %s: make them "
			"with the context of rbx_peer_verbs()",
			device->verbs->device->name);
	return 0;
}

int rbx_verbs_native_qp_create(struct rbx_verbs_conn *conn,
			       struct ibv_qp_init_attr *attr,
			       struct rbx_verbs_qp **created, char *error)
{
	struct rbx_verbs_device *device = conn->device;
	int err = attr_check(device, attr, error);
	struct rbx_verbs_qp *qp;

	if (err)
		return err;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return rbx_verbs_explain(error, -ENOMEM, "out of memory");
	qp->ibv = ibv_create_qp(device->pd, attr);
	if (!qp->ibv) {
		err = -errno;
		free(qp);
		return rbx_verbs_explain(error, err,
			"no queue pair of %u sends and %u receives: %s; ask "
			"for less, or raise RLIMIT_MEMLOCK (`ulimit -l`)",
			attr->cap.max_send_wr, attr->cap.max_recv_wr,
			strerror(-err));
	}
	qp->conn = conn;
	qp->is_native = true;
	qp->qp.device = &device->device;
	rbx_verbs_conn_name_peer(conn->id, qp->qp.peer_name);
	rbx_verbs_conn_attach(conn, qp, false);
	*created = qp;
	return 0;
}
