/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * accept.c - accepts or rejects a peer that asks to connect.
 *
 * Accepting makes the queue pair ready before the answer is sent, because the peer may send
 * as soon as it has the answer. It does not wait for the peer to confirm. If the peer never
 * confirms, the connection thread notices, and the queue pair fails as with any other end.
 *
 * The peer knows where to send only from the answer. So if the answer is not sent, no message
 * has come, and no completion has named a queue pair that is destroyed here.
 *
 * The accepting program should let the peer send first: a packet to a peer that has not made
 * its own end ready is lost, and repeated only after a timeout.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/verbs/explain.h"
#include "fabric/verbs/verbs.h"

static int answer_send(const struct rbx_verbs_request *request,
		       struct rbx_verbs_qp *qp, const void *private_data,
		       size_t private_data_bytes)
{
	struct rbx_verbs_conn *conn = request->conn;
	struct rdma_conn_param param = request->offer;
	int err;

	rbx_verbs_conn_set_ack_timeout(conn->id);
	rbx_verbs_conn_limit_param(conn->device, &param);
	param.qp_num = qp->ibv->qp_num;
	param.private_data = private_data;
	param.private_data_len = (uint8_t)private_data_bytes;
	err = rbx_verbs_conn_make_ready(conn, &param);
	if (!err && rdma_accept(conn->id, &param))
		err = -errno;
	return err;
}

int rbx_verbs_accept(struct rbx_conn_request *rbx_request,
		     const struct rbx_qp_init *init, const void *private_data,
		     size_t private_data_bytes, struct rbx_qp **created,
		     char *error)
{
	struct rbx_verbs_request *request =
		(struct rbx_verbs_request *)rbx_request;
	struct rbx_verbs_conn *conn = request->conn;
	struct rbx_verbs_qp *qp;
	int err = -EINVAL;

	if (private_data_bytes > RBX_ACCEPT_DATA_MAX)
		rbx_verbs_explain(error, err,
			"private data of %zu bytes: at most %d fit",
			private_data_bytes, RBX_ACCEPT_DATA_MAX);
	else
		err = rbx_verbs_qp_create(conn, init, &qp, error);
	if (err) {
		rbx_verbs_reject(rbx_request, NULL, 0);
		return err;
	}
	err = answer_send(request, qp, private_data, private_data_bytes);
	if (err) {
		rbx_verbs_explain(error, err,
			"cannot accept %s: %s; it may have given up",
			rbx_request->peer_name, strerror(-err));
		rbx_verbs_destroy_qp(&qp->qp);
	} else {
		rbx_verbs_conn_made(conn);
		*created = &qp->qp;
	}
	free(request);
	return err;
}

void rbx_verbs_reject(struct rbx_conn_request *rbx_request,
		      const void *private_data, size_t private_data_bytes)
{
	struct rbx_verbs_request *request =
		(struct rbx_verbs_request *)rbx_request;

	if (private_data_bytes > RBX_REJECT_DATA_MAX)
		private_data_bytes = RBX_REJECT_DATA_MAX;
	rdma_reject(request->conn->id, private_data,
		    (uint8_t)private_data_bytes);
	rbx_verbs_conn_destroy(request->conn);
	free(request);
}
