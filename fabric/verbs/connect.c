/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connect.c - the connecting end of a connection.
 *
 * Three steps with an answer each, under one deadline: the address tells which device leads
 * there, the route tells how, and the peer accepts or rejects. Then the queue pair is made
 * ready and the peer is told so.
 *
 * The routes of the host decide which device leads to an address. If that is not the one that
 * was opened, connecting fails: its memory and queues are of no use on another device.
 *
 * After any failure all that was made is destroyed, by which librdmacm cancels what is still
 * under way.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/verbs/address.h"
#include "fabric/verbs/explain.h"
#include "fabric/verbs/status.h"
#include "fabric/verbs/verbs.h"
#include "fabric/loopback.h"

/*
 * The connection manager asks for the neighbour's hardware address, and only then begins to
 * listen for the answer. It finds an answer that came in between only when its time is over
 * and it looks once more. So it is given little time, again and again.
 */
#define RESOLVE_MS 50

/* An attempt to connect. */
struct attempt {
	struct rbx_verbs_conn *conn;
	struct rbx_connect_init *init;
	uint64_t deadline_ns;
	char *error;
};

static int explain_step(const struct attempt *attempt, const char *step,
			int err)
{
	const char *address = attempt->init->address;
	const char *device = attempt->conn->device->verbs->device->name;

	if (err == -ENODEV || err == -EADDRNOTAVAIL)
		return rbx_verbs_explain(attempt->error, err,
			"%s is not reached through an RDMA device; give the "
			"address of an interface that %s connects to, or use "
			"the soft fabric", address, device);
	if (err == -ETIMEDOUT)
		return rbx_verbs_explain(attempt->error, err,
			"no answer from %s within %u ms (%s); see that the "
			"host is up and that UDP port 4791 is open for RoCE",
			address, attempt->init->timeout_ms, step);
	return rbx_verbs_explain(attempt->error, err,
		"cannot connect to %s from %s: %s: %s", address, device, step,
		strerror(-err));
}

static int attempt_wait(const struct attempt *attempt, const char *step)
{
	int err = rbx_verbs_conn_wait(attempt->conn, attempt->deadline_ns);

	return err ? explain_step(attempt, step, err) : 0;
}

static int device_check(const struct attempt *attempt)
{
	const struct rbx_verbs_device *device = attempt->conn->device;
	const struct rdma_cm_id *id = attempt->conn->id;

	if (id->verbs == device->verbs && id->port_num == device->port)
		return 0;
	return rbx_verbs_explain(attempt->error, -EXDEV,
		"%s is reached through %s port %u, but %s port %u is open; "
		"open that device, or give an address of this one",
		attempt->init->address,
		id->verbs ? id->verbs->device->name : "no RDMA device",
		id->port_num, device->verbs->device->name, device->port); // NOLINT: never NULL
}

static int resolve_address(const struct attempt *attempt,
			   struct sockaddr_storage *address)
{
	struct rbx_verbs_conn *conn = attempt->conn;
	struct sockaddr *source = (struct sockaddr *)&conn->device->source;
	const int timeout_ms = (int)RBX_MIN(attempt->init->timeout_ms,
					    (uint32_t)RESOLVE_MS);
	int err;

	if (source->sa_family != address->ss_family)
		source = NULL;
	do {
		rbx_verbs_conn_expect(conn);
		if (rdma_resolve_addr(conn->id, source,
				      (struct sockaddr *)address, timeout_ms))
			return explain_step(attempt, "resolving the address",
					    -errno);
		err = rbx_verbs_conn_wait(conn, attempt->deadline_ns);
	} while (err == -ETIMEDOUT && rbx_verbs_now_ns() < attempt->deadline_ns);
	return err ? explain_step(attempt, "resolving the address", err) : 0;
}

static int resolve(const struct attempt *attempt,
		   struct sockaddr_storage *address)
{
	struct rbx_verbs_conn *conn = attempt->conn;
	const int timeout_ms = (int)attempt->init->timeout_ms;
	int err = resolve_address(attempt, address);

	if (!err)
		err = device_check(attempt);
	if (err)
		return err;
	rbx_verbs_conn_set_ack_timeout(conn->id);
	rbx_verbs_conn_expect(conn);
	if (rdma_resolve_route(conn->id, timeout_ms))
		return explain_step(attempt, "resolving the route", -errno);
	return attempt_wait(attempt, "resolving the route");
}

/* Gives the peer's private data to the caller; it may be of a rejection. */
static void reply_take(const struct attempt *attempt)
{
	struct rbx_connect_init *init = attempt->init;
	const struct rbx_verbs_conn *conn = attempt->conn;
	size_t bytes = conn->private_data_bytes;

	if (bytes > init->reply_data_max_bytes)
		bytes = init->reply_data_max_bytes;
	if (bytes)
		memcpy(init->reply_data, conn->private_data, bytes);
	init->reply_data_bytes = bytes;
}

static int request_send(const struct attempt *attempt,
			const struct rbx_verbs_qp *qp)
{
	const struct rbx_connect_init *init = attempt->init;
	struct rdma_conn_param param = {
		.responder_resources = UINT8_MAX,
		.initiator_depth = UINT8_MAX,
		.qp_num = qp->ibv->qp_num,
		.private_data = init->private_data,
		.private_data_len = (uint8_t)init->private_data_bytes,
	};

	rbx_verbs_conn_limit_param(attempt->conn->device, &param);
	rbx_verbs_conn_expect(attempt->conn);
	if (rdma_connect(attempt->conn->id, &param))
		return explain_step(attempt, "asking the peer", -errno);
	return 0;
}

static int answer_take(const struct attempt *attempt)
{
	int err = rbx_verbs_conn_wait(attempt->conn, attempt->deadline_ns);

	reply_take(attempt);
	if (err == -ECONNREFUSED)
		return rbx_verbs_explain(attempt->error, err,
			"nothing listens at %s; start a server of this "
			"fabric there", attempt->init->address);
	if (err == -EBUSY)
		return rbx_verbs_explain(attempt->error, err,
			"%s refused the connection; it may be busy, or not "
			"accept you", attempt->init->address);
	return err ? explain_step(attempt, "waiting for the peer", err) : 0;
}

/*
 * If the peer has accepted and already ended, connecting has not failed: the queue pair
 * flushes what is posted, as with any other end. The same holds for any failure after the
 * queue pair could receive, as a completion may have named it.
 */
static int ready_tell(const struct attempt *attempt)
{
	struct rbx_verbs_conn *conn = attempt->conn;
	int err;

	rbx_verbs_conn_limit_param(conn->device, &conn->param);
	err = rbx_verbs_conn_make_ready(conn, &conn->param);
	if (!err && rdma_establish(conn->id))
		err = -ENOTCONN;
	if (!err)
		return 0;
	if (err != -ENOTCONN && !atomic_load(&conn->ended))
		return explain_step(attempt, "making the queue pair ready",
				    err);
	rbx_verbs_conn_end(conn);
	return 0;
}

static int handshake(const struct attempt *attempt, struct rbx_verbs_qp *qp)
{
	int err = request_send(attempt, qp);

	if (!err)
		err = answer_take(attempt);
	if (!err)
		err = ready_tell(attempt);
	return err;
}

static int conn_open(struct rbx_verbs_device *device, uint8_t traffic_class,
		     struct rbx_verbs_conn **conn, char *error)
{
	struct rdma_cm_id *id;
	int err;

	if (!traffic_class)
		traffic_class = device->traffic_class;
	if (rdma_create_id(device->channel, &id, NULL, RDMA_PS_TCP))
		return rbx_verbs_explain(error, -errno,
			"librdmacm cannot create a connection: %s", strerror(errno));
	if (traffic_class &&
	    rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS,
			    &traffic_class, sizeof(traffic_class))) {
		err = rbx_verbs_explain(error, -errno,
			"traffic_class=%u is refused: %s",
			traffic_class, strerror(errno));
		goto out_destroy_id;
	}
	err = rbx_verbs_conn_create(device, id, conn);
	if (!err)
		return 0;
	rbx_verbs_explain(error, err, "out of memory");
out_destroy_id:
	rdma_destroy_id(id);
	return err;
}

static int init_check(const struct rbx_connect_init *init, char *error)
{
	if (init->private_data_bytes > RBX_CONNECT_DATA_MAX)
		return rbx_verbs_explain(error, -EINVAL,
			"private data of %zu bytes: at most %d fit",
			init->private_data_bytes, RBX_CONNECT_DATA_MAX);
	if (!init->timeout_ms || init->timeout_ms > INT32_MAX)
		return rbx_verbs_explain(error, -EINVAL,
			"a connection needs a timeout of 1 to %d ms",
			INT32_MAX);
	return 0;
}

/* A text has no room for the interface of a link-local address. */
static void resolved_keep(const struct sockaddr_storage *address,
			  char *resolved)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;

	if (!resolved)
		return;
	*resolved = '\0';
	if (address->ss_family != AF_INET6 || !in6->sin6_scope_id)
		rbx_verbs_address_format((const struct sockaddr *)address,
					 resolved);
}

int rbx_verbs_connect(struct rbx_device *device, const struct rbx_qp_init *init,
		      struct rbx_connect_init *connect, struct rbx_qp **created,
		      char *error)
{
	struct attempt attempt = { .init = connect, .error = error };
	struct sockaddr_storage address;
	struct rbx_verbs_qp *qp;
	int err = init_check(connect, error);

	connect->reply_data_bytes = 0;
	if (!err)
		err = rbx_verbs_address_parse(connect->address, false, &address,
					      error);
	if (!err && connect->loopback_only &&
	    !rbx_sockaddr_is_loopback((const struct sockaddr *)&address))
		err = rbx_verbs_explain(error, -EREMOTE,
					"%s is another machine",
					connect->address);
	if (!err)
		err = conn_open(rbx_verbs_device(device), init->traffic_class,
				&attempt.conn, error);
	if (err)
		return err;
	attempt.deadline_ns = rbx_verbs_now_ns() +
			      (uint64_t)connect->timeout_ms * 1000000;
	err = resolve(&attempt, &address);
	if (!err)
		err = rbx_verbs_qp_create(attempt.conn, init, &qp, error);
	if (err) {
		rbx_verbs_conn_destroy(attempt.conn);
		return err;
	}
	err = handshake(&attempt, qp);
	if (err) {
		rbx_verbs_destroy_qp(&qp->qp);
		return err;
	}
	resolved_keep(&address, connect->resolved);
	rbx_verbs_conn_made(attempt.conn);
	*created = &qp->qp;
	return 0;
}
