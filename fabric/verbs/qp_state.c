/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * qp_state.c - moving a queue pair through its states.
 *
 * RESET -> INIT -> RTR (ready to receive) -> RTS (ready to send) -> ERR. What
 * each move needs of the path and the peer, librdmacm knows when it has the
 * peer's message. It would make the moves itself for a queue pair that it
 * created; we make them, for two reasons: the receive-not-ready timer can be
 * set before the first message arrives, and a queue pair is touched only by
 * our own threads, one at a time (conn.c), so that ending or destroying it in
 * mid-connect races with nobody.
 */
#include <errno.h>
#include <string.h>

#include "core/retry.h"
#include "fabric/verbs/verbs.h"

/* What the owner wants of the packets, over what the route says. */
static void path_set(const struct rbx_verbs_conn *conn, struct ibv_ah_attr *path)
{
	if (conn->traffic_class && path->is_global)
		path->grh.traffic_class = conn->traffic_class;
	if (conn->service_level)
		path->sl = conn->service_level;
}

static int qp_move(const struct rbx_verbs_conn *conn, enum ibv_qp_state state,
		   const struct rdma_conn_param *param, unsigned int rights)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	if (rdma_init_qp_attr(conn->id, &attr, &mask))
		return -ENOTCONN;
	if (mask & IBV_QP_AV)
		path_set(conn, &attr.ah_attr);
	if (mask & IBV_QP_ACCESS_FLAGS) /* a region's own rights decide */
		attr.qp_access_flags = rights;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		attr.max_dest_rd_atomic = param->responder_resources;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		attr.max_rd_atomic = param->initiator_depth;
	if (mask & IBV_QP_RETRY_CNT)
		attr.retry_cnt = param->retry_count;
	if (mask & IBV_QP_RNR_RETRY)
		attr.rnr_retry = param->rnr_retry_count;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		attr.min_rnr_timer = RBX_RECEIVE_NOT_READY_TIMER;
	return -ibv_modify_qp(conn->qp, &attr, mask);
}

/*
 * From RESET to RTS, for one that has heard from its peer. Takes from `param`
 * how many reads may be under way, each direction, and how often to retry.
 * -ENOTCONN: the connection is gone, or the device goes no further when a message may
 * have come; else what the device says, and none has.
 */
int rbx_verbs_qp_make_ready(const struct rbx_verbs_conn *conn,
			    const struct rdma_conn_param *param,
			    bool has_atomics)
{
	const unsigned int rights =
		IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
		(has_atomics ? IBV_ACCESS_REMOTE_ATOMIC : 0);
	int err = qp_move(conn, IBV_QPS_INIT, param, rights);

	if (!err)
		err = qp_move(conn, IBV_QPS_RTR, param, rights);
	if (!err && qp_move(conn, IBV_QPS_RTS, param, rights))
		err = -ENOTCONN;
	return err;
}

/* To ERR: whatever is posted is flushed. Harmless where it is there already. */
int rbx_verbs_qp_make_fail(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}
