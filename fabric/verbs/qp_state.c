/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * qp_state.c - moves a queue pair through its states.
 *
 * RESET -> INIT -> RTR (ready to receive) -> RTS (ready to send) -> ERR. librdmacm knows what
 * each move needs of the path and the peer when it has the peer's message. It would make the
 * moves itself for a queue pair that it created. We make them, for two reasons: the
 * receive-not-ready timer can be set before the first message arrives; and only our own
 * threads use a queue pair, one at a time (conn.c), so there is no race if it is ended or
 * destroyed in the middle of connecting.
 */
#include <errno.h>
#include <string.h>

#include "core/retry.h"
#include "fabric/verbs/verbs.h"

/* The owner's options for packets have priority over the route's. */
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
	if (mask & IBV_QP_ACCESS_FLAGS) /* the rights of the region decide */
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
 * From RESET to RTS, after the peer's message has come. Takes from `param` how many reads may
 * be under way in each direction, and how often to retry. -ENOTCONN: the connection has
 * ended, or the device goes no further when a message may have come; else the device's error,
 * and no message has come.
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

/* To ERR: whatever is posted is flushed. Harmless if it is there already. */
int rbx_verbs_qp_make_fail(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}
