/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * qp.c - makes and destroys queue pairs.
 *
 * How deep a queue can be depends on the size of its entries, in a way that differs between
 * devices and that none reports. So creating starts with what was asked for and halves the
 * send depth until the device accepts it. The queue pair has the result.
 *
 * Destroying: the connection is ended, and the queue pair leaves the table, so poll() drops
 * its completions from then on. Then a poll that found it just before is waited for. A device
 * either removes the completions of a destroyed queue pair from the queue, or does not use
 * its number again soon: either way none is taken for one of another queue pair. A native
 * queue pair (native.c) was never in the table: its completions are not ours.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/verbs/explain.h"
#include "fabric/verbs/verbs.h"

#define SEND_DEPTH_MIN 16 /* halving does not go below it */
#define SERVICE_LEVEL_MAX 15 /* 4 bits of a packet of InfiniBand */
#define INLINE_PROBE_MAX_BYTES 512 /* more than this is better not copied */

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t recv_max_sge(const struct rbx_qp_init *init)
{
	return init->recv_max_sge ? init->recv_max_sge : 1;
}

static int init_check(const struct rbx_verbs_device *device,
		      const struct rbx_qp_init *init, char *error)
{
	const struct rbx_device_caps *caps = &device->device.caps;
	const struct rbx_verbs_srq *srq = (struct rbx_verbs_srq *)init->srq;

	if (srq && (srq->cq != init->recv_cq || srq->domain != init->domain))
		return rbx_verbs_explain(error, -EINVAL,
			"a shared receive queue needs queue pairs of its own completion "
			"queue and domain");
	if (!init->send_depth_count || !init->max_sge)
		return rbx_verbs_explain(error, -EINVAL,
			"a queue pair needs at least one send entry and one "
			"scatter entry");
	if (init->service_level > SERVICE_LEVEL_MAX)
		return rbx_verbs_explain(error, -EINVAL,
			"service level %u: there are 0 to %d",
			init->service_level, SERVICE_LEVEL_MAX);
	if (init->max_sge > caps->max_sge)
		return rbx_verbs_explain(error, -EINVAL,
			"scatter lists of %u entries are not possible: %s "
			"allows %u", init->max_sge,
			device->verbs->device->name, caps->max_sge);
	if (init->recv_max_sge > caps->max_recv_sge)
		return rbx_verbs_explain(error, -EINVAL,
			"receives of %u entries are not possible: %s allows %u",
			init->recv_max_sge, device->verbs->device->name,
			caps->max_recv_sge);
	if (init->recv_depth_count > caps->max_recv_wr)
		return rbx_verbs_explain(error, -EINVAL,
			"%u receives are not possible: %s allows %u",
			init->recv_depth_count, device->verbs->device->name,
			caps->max_recv_wr);
	return 0;
}

/* Returns NULL with errno, or a queue pair and its actual properties in `attr`. */
static struct ibv_qp *qp_negotiate(struct ibv_pd *pd,
				   struct ibv_qp_init_attr *attr)
{
	const struct ibv_qp_cap wanted = attr->cap;
	uint32_t depth = wanted.max_send_wr;
	struct ibv_qp *qp;

	for (;;) {
		attr->cap = wanted;
		attr->cap.max_send_wr = depth;
		qp = ibv_create_qp(pd, attr);
		if (qp || (errno != EINVAL && errno != ENOMEM) ||
		    depth <= SEND_DEPTH_MIN)
			break;
		depth /= 2;
	}
	/* Devices round up; completion queues are sized by what was asked. */
	attr->cap.max_send_wr = smaller(attr->cap.max_send_wr, depth);
	return qp;
}

static struct ibv_qp *qp_open(struct rbx_verbs_device *device,
			      const struct rbx_qp_init *init,
			      struct ibv_qp_init_attr *attr)
{
	const struct rbx_device_caps *caps = &device->device.caps;

	*attr = (struct ibv_qp_init_attr){
		.srq = init->srq ? ((struct rbx_verbs_srq *)init->srq)->ibv :
				   NULL,
		.send_cq = rbx_verbs_cq(init->send_cq)->ibv,
		.recv_cq = rbx_verbs_cq(init->recv_cq)->ibv,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 0,
		.cap = {
			.max_send_wr = smaller(init->send_depth_count,
					       caps->max_send_wr),
			.max_recv_wr = init->srq ? 0 : init->recv_depth_count,
			.max_send_sge = init->max_sge,
			.max_recv_sge = init->srq ? 0 : recv_max_sge(init),
			.max_inline_data = smaller(init->max_inline_bytes,
						   caps->max_inline_bytes),
		},
	};
	return qp_negotiate(rbx_verbs_pd(device, init->domain), attr);
}

/* Halves the size until the device accepts it; 0 if it accepts none. */
uint32_t rbx_verbs_qp_probe_inline_bytes(struct rbx_verbs_device *device)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC };
	struct ibv_cq *cq = ibv_create_cq(device->verbs, 1, NULL, NULL, 0);
	uint32_t bytes = INLINE_PROBE_MAX_BYTES;
	struct ibv_qp *qp = NULL;

	if (!cq)
		return 0;
	for (; bytes && !qp; bytes = qp ? bytes : bytes / 2) {
		attr.send_cq = cq;
		attr.recv_cq = cq;
		attr.cap = (struct ibv_qp_cap){
			.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = bytes,
		};
		qp = ibv_create_qp(device->pd, &attr);
	}
	if (qp)
		ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	return bytes;
}

static void qp_fill(struct rbx_verbs_qp *qp, const struct rbx_qp_init *init,
		    const struct ibv_qp_cap *cap)
{
	qp->srq = (struct rbx_verbs_srq *)init->srq;
	qp->max_sge = init->max_sge;
	qp->recv_max_sge = recv_max_sge(init);
	qp->qp.device = &qp->conn->device->device;
	qp->qp.send_cq = init->send_cq;
	qp->qp.recv_cq = init->recv_cq;
	qp->qp.user = init->user;
	qp->qp.send_depth_count = cap->max_send_wr;
	qp->qp.max_inline_bytes = smaller(cap->max_inline_data,
					  init->max_inline_bytes);
	rbx_verbs_conn_name_peer(qp->conn->id, qp->qp.peer_name);
}

static void qp_free(struct rbx_verbs_qp *qp)
{
	free(qp->sends.wr_ids);
	free(qp->recvs.wr_ids);
	free(qp);
}

/* NULL: no memory. */
static struct rbx_verbs_qp *qp_alloc(const struct rbx_qp_init *init,
				     const struct ibv_qp_cap *cap)
{
	struct rbx_verbs_qp *qp =
		calloc(1, sizeof(*qp) + cap->max_send_wr * sizeof(qp->wrs[0]));

	if (!qp)
		return NULL;
	if (!rbx_verbs_wr_ring_init(&qp->sends, cap->max_send_wr) &&
	    !rbx_verbs_wr_ring_init(&qp->recvs,
				    init->srq ? 0 : init->recv_depth_count))
		return qp;
	qp_free(qp);
	return NULL;
}

int rbx_verbs_qp_create(struct rbx_verbs_conn *conn,
			const struct rbx_qp_init *init,
			struct rbx_verbs_qp **created, char *error)
{
	struct rbx_verbs_device *device = conn->device;
	struct ibv_qp_init_attr attr;
	struct rbx_verbs_qp *qp;
	struct ibv_qp *ibv;
	int err;

	if (init->native)
		return rbx_verbs_native_qp_create(conn, init->native, created,
						  error);
	err = init_check(device, init, error);
	if (err)
		return err;
	ibv = qp_open(device, init, &attr);
	if (!ibv)
		return rbx_verbs_explain(error, -errno,
			"no queue pair of %u sends and %u receives: %s; ask "
			"for less, or raise RLIMIT_MEMLOCK (`ulimit -l`)",
			init->send_depth_count, init->recv_depth_count,
			strerror(errno));
	qp = qp_alloc(init, &attr.cap);
	if (!qp)
		goto out_destroy_ibv;
	qp->ibv = ibv;
	qp->conn = conn;
	conn->traffic_class = init->traffic_class;
	conn->service_level = init->service_level;
	qp_fill(qp, init, &attr.cap);
	/* The table makes it visible to pollers. */
	rbx_qp_made(init, &qp->qp);
	if (rbx_verbs_qp_table_add(&device->qps, ibv->qp_num, qp))
		goto out_free_qp;
	rbx_verbs_conn_attach(conn, qp, init->tells_end);
	*created = qp;
	return 0;

out_free_qp:
	qp_free(qp);
out_destroy_ibv:
	ibv_destroy_qp(ibv);
	return rbx_verbs_explain(error, -ENOMEM, "out of memory");
}

void rbx_verbs_disconnect(struct rbx_qp *qp)
{
	rbx_verbs_conn_end(rbx_verbs_qp(qp)->conn);
}

static void poll_wait_out(struct rbx_cq *cq)
{
	pthread_mutex_lock(&rbx_verbs_cq(cq)->lookup_lock);
	pthread_mutex_unlock(&rbx_verbs_cq(cq)->lookup_lock);
}

void rbx_verbs_destroy_qp(struct rbx_qp *rbx_qp)
{
	struct rbx_verbs_qp *qp = rbx_verbs_qp(rbx_qp);

	rbx_verbs_conn_end(qp->conn);
	pthread_mutex_lock(&qp->conn->device->lock);
	LIST_REMOVE(qp, entry);
	pthread_mutex_unlock(&qp->conn->device->lock);
	if (!qp->is_native) {
		rbx_verbs_qp_table_remove(&qp->conn->device->qps,
					  qp->ibv->qp_num);
		poll_wait_out(qp->qp.send_cq);
		poll_wait_out(qp->qp.recv_cq);
	}
	rbx_verbs_conn_destroy(qp->conn);
	ibv_destroy_qp(qp->ibv);
	qp_free(qp);
}
