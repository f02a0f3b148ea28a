/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verbs.h - the objects of the verbs fabric, only for the files of this folder.
 *
 * Each public object (rbx_device, rbx_cq, ...) is the first field of its object here;
 * rbx_verbs_X() converts from the former to the latter.
 *
 * Threads: besides the caller's there is one for each device, the connection thread. It takes
 * the events of librdmacm and passes each to its target, and it reads the asynchronous events
 * of the device (events.c). Lock order: that of all devices (events.c), cq->lookup_lock,
 * device->lock, conn->lock, srq->lock, events.lock. The lock of a listener and that of the
 * table of queue pairs are taken alone.
 */
#ifndef RBX_VERBS_H
#define RBX_VERBS_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <time.h>

#include "fabric/events.h"
#include "fabric/fabric.h"
#include "fabric/verbs/qp_table.h"
#include "fabric/verbs/wr_ring.h"

struct rbx_verbs_device {
	struct rbx_device device;
	struct ibv_context **contexts; /* of librdmacm: keeps `verbs` open */
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_mr *any_mr; /* all memory, by on-demand paging; or NULL */
	uint8_t port;
	struct sockaddr_storage source; /* connect from here; AF_UNSPEC: free */
	uint8_t traffic_class; /* of connections that we make; 0: any */
	uint32_t cqs_count; /* atomic: created so far, each with the next vector */
	bool has_windows; /* of type 2 */
	uint8_t max_responder_resources; /* reads of the peer at a time */
	uint8_t max_initiator_depth; /* reads of ours at a time */
	struct rbx_verbs_qp_table qps;
	struct rbx_device_events events;
	struct rbx_raised_event failed, port_down, port_up;
	atomic_bool has_failed; /* never becomes false again */
	LIST_ENTRY(rbx_verbs_device) entry; /* in the list of all devices, see events.c */
	pthread_mutex_t lock; /* guards the lists */
	LIST_HEAD(, rbx_verbs_qp) all_qps; /* including native ones */
	LIST_HEAD(, rbx_verbs_srq) srqs;
	uint32_t srqs_count; /* created so far */
	struct rdma_event_channel *channel;
	int stop_fd; /* readable: the connection thread ends */
	pthread_t cm_thread;
};

struct rbx_verbs_domain {
	struct rbx_domain domain;
	struct ibv_pd *pd;
};

struct rbx_verbs_cq {
	struct rbx_cq cq;
	struct ibv_cq *ibv;
	struct ibv_comp_channel *channel;
	uint32_t events_max; /* that may wait: each arm() causes at most one */
	unsigned int unacked_count; /* events taken, not acknowledged */
	/* Held while completions are matched with their queue pairs. */
	pthread_mutex_t lookup_lock;
};

/* The target of the events of an rdma_cm_id; its context points to one of these. */
struct rbx_verbs_cm_target {
	void (*handle)(struct rbx_verbs_cm_target *target,
		       struct rdma_cm_event *event);
};

#define RBX_VERBS_MOVE_REFUSED UINT64_MAX

/* One rdma_cm_id while it is being connected, and later the connection. */
struct rbx_verbs_conn {
	struct rbx_verbs_cm_target target;
	struct rbx_verbs_device *device;
	struct rdma_cm_id *id;
	/*
	 * True from the first sign of an end. Posting reads it without the lock; it is
	 * ordered with the move of the queue pair to error.
	 */
	atomic_bool ended;
	/* Guards all below; `changed` is signaled after each event. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct ibv_qp *qp; /* NULL until there is one */
	/* Atomic: when it was moved to error; 0: not yet; or RBX_VERBS_MOVE_REFUSED. */
	_Atomic uint64_t moved_ns;
	uint8_t traffic_class, service_level; /* 0: as the route says */
	struct rbx_raised_event end; /* its qp is NULL: no event is wanted */
	bool is_made, is_over; /* when both are true the end is reported */
	bool answered; /* the step under way has its event, which is: */
	enum rdma_cm_event_type event;
	int status;
	struct rdma_conn_param param; /* without private data, which is here */
	uint8_t private_data[RBX_ACCEPT_DATA_MAX];
	size_t private_data_bytes;
};

/* A receive of a shared queue, and its scatter list, until it is polled. */
struct rbx_verbs_shared_receive {
	uint64_t wr_id;
	uint32_t sge_count;
	uint32_t next_free; /* index; RBX_VERBS_SRQ_NONE */
};

#define RBX_VERBS_SRQ_NONE UINT32_MAX

struct rbx_verbs_srq {
	struct rbx_srq srq;
	struct ibv_srq *ibv;
	const struct rbx_domain *domain;
	const struct rbx_cq *cq;
	uint32_t number; /* in the ids of its work requests */
	uint32_t max_sge;
	struct rbx_raised_event low;
	LIST_ENTRY(rbx_verbs_srq) entry; /* of its device */
	pthread_mutex_t lock; /* guards what follows; no other is taken under it */
	uint32_t free_first;
	struct rbx_verbs_shared_receive *receives;
	struct ibv_sge *sges; /* max_sge of each */
};

struct rbx_verbs_qp {
	struct rbx_qp qp;
	struct ibv_qp *ibv;
	struct rbx_verbs_conn *conn;
	LIST_ENTRY(rbx_verbs_qp) entry; /* of its device */
	struct rbx_verbs_srq *srq; /* or NULL */
	bool is_native; /* its owner posts and polls: the fields below are not used */
	uint32_t max_sge;
	uint32_t recv_max_sge;
	struct rbx_verbs_wr_ring sends;
	struct rbx_verbs_wr_ring recvs;
	struct ibv_send_wr wrs[]; /* send_depth_count: a chain, translated */
};

static inline struct rbx_verbs_device *rbx_verbs_device(struct rbx_device *d)
{
	return (struct rbx_verbs_device *)d;
}

static inline struct rbx_verbs_cq *rbx_verbs_cq(struct rbx_cq *cq)
{
	return (struct rbx_verbs_cq *)cq;
}

static inline struct rbx_verbs_qp *rbx_verbs_qp(struct rbx_qp *qp)
{
	return (struct rbx_verbs_qp *)qp;
}

static inline uint64_t rbx_verbs_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* device.c */
int rbx_verbs_probe(char *error);
int rbx_verbs_open(const struct rbx_device_options *options,
		   struct rbx_device **device, char *error);
void rbx_verbs_close(struct rbx_device *device);

/* on_demand.c */
int rbx_verbs_on_demand_enable(struct rbx_verbs_device *device, char *error);

/* memory.c */
int rbx_verbs_create_domain(struct rbx_device *device,
			    struct rbx_domain **domain, char *error);
void rbx_verbs_destroy_domain(struct rbx_domain *domain);
/* NULL: the device's own. */
struct ibv_pd *rbx_verbs_pd(const struct rbx_verbs_device *device,
			    const struct rbx_domain *domain);
int rbx_verbs_register_memory(struct rbx_device *device,
			      const struct rbx_mr_init *inits, size_t count,
			      struct rbx_mr **mrs, char *error);
struct ibv_mr *rbx_verbs_mr(struct rbx_mr *mr);
bool rbx_verbs_mr_allows_windows(const struct rbx_mr *mr);
/* Rights of peers, and what they imply, as libibverbs flags. */
int rbx_verbs_access_flags(uint32_t rights);
void rbx_verbs_deregister_memory(struct rbx_device *device,
				 struct rbx_mr **mrs, size_t count);

/* window.c */
int rbx_verbs_create_window(struct rbx_qp *qp,
			    const struct rbx_device_window_init *init,
			    struct rbx_device_window **window, char *error);
void rbx_verbs_destroy_window(struct rbx_device_window *window);
/* The opening of a window as a work request of the device. */
void rbx_verbs_window_translate(const struct rbx_device_window *window,
				struct ibv_send_wr *wr);

/* cq.c, poll.c */
int rbx_verbs_create_cq_on(struct rbx_device *device, uint32_t depth_count,
			   uint32_t vector, struct rbx_cq **cq, char *error);
int rbx_verbs_create_cq(struct rbx_device *device, uint32_t depth_count,
			struct rbx_cq **cq, char *error);
void rbx_verbs_destroy_cq(struct rbx_cq *cq);
int rbx_verbs_arm(struct rbx_cq *cq);
void rbx_verbs_consume_events(struct rbx_cq *cq);
int rbx_verbs_poll(struct rbx_cq *cq, struct rbx_wc *wcs, int max);

/* post.c */
int rbx_verbs_post_send(struct rbx_qp *qp, struct rbx_wr *first,
			struct rbx_wr **bad);
int rbx_verbs_post_recv(struct rbx_qp *qp, struct rbx_recv_wr *first,
			struct rbx_recv_wr **bad);

/* The entries of a receive's list that have bytes, or -EINVAL. */
int rbx_verbs_recv_sge_count(const struct rbx_recv_wr *wr, uint32_t max_sge);

/* srq.c */
int rbx_verbs_create_srq(struct rbx_device *device,
			 const struct rbx_srq_init *init, struct rbx_srq **srq,
			 char *error);
void rbx_verbs_destroy_srq(struct rbx_srq *srq);
int rbx_verbs_post_srq_recv(struct rbx_srq *srq, struct rbx_recv_wr *first,
			    struct rbx_recv_wr **bad);
void rbx_verbs_set_srq_limit(struct rbx_srq *srq, uint32_t limit_count);
/* A completion of it was polled: its place is free. Returns its wr_id. */
uint64_t rbx_verbs_srq_complete(struct rbx_verbs_srq *srq, uint64_t id);
/* A completion whose queue pair is destroyed: the receive is posted once more. */
void rbx_verbs_srq_return(struct rbx_verbs_device *device, uint64_t id);

/* qp.c: a queue pair for `conn`, not yet connected; destroy() takes conn. */
int rbx_verbs_qp_create(struct rbx_verbs_conn *conn,
			const struct rbx_qp_init *init,
			struct rbx_verbs_qp **qp, char *error);
uint32_t rbx_verbs_qp_probe_inline_bytes(struct rbx_verbs_device *device);
void rbx_verbs_disconnect(struct rbx_qp *qp);
void rbx_verbs_destroy_qp(struct rbx_qp *qp);

/* native.c: the same for init->native. */
int rbx_verbs_native_qp_create(struct rbx_verbs_conn *conn,
			       struct ibv_qp_init_attr *attr,
			       struct rbx_verbs_qp **qp, char *error);
struct rbx_native_device rbx_verbs_native_device(struct rbx_device *device);
struct ibv_qp *rbx_verbs_native_qp(struct rbx_qp *qp);

/* qp_state.c; with the lock of the connection held. */
int rbx_verbs_qp_make_ready(const struct rbx_verbs_conn *conn,
			    const struct rdma_conn_param *param,
			    bool has_atomics);
/* Returns 0, or the error of libibverbs: then it may still carry out what is posted. */
int rbx_verbs_qp_make_fail(struct ibv_qp *qp);

/* conn.c */
int rbx_verbs_conn_create(struct rbx_verbs_device *device,
			  struct rdma_cm_id *id, struct rbx_verbs_conn **conn);
void rbx_verbs_conn_destroy(struct rbx_verbs_conn *conn);
void rbx_verbs_conn_attach(struct rbx_verbs_conn *conn,
			   struct rbx_verbs_qp *qp, bool tells_end);
void rbx_verbs_conn_made(struct rbx_verbs_conn *conn);
int rbx_verbs_conn_make_ready(struct rbx_verbs_conn *conn,
			      const struct rdma_conn_param *param);
void rbx_verbs_conn_flush(struct rbx_verbs_conn *conn);
void rbx_verbs_conn_end(struct rbx_verbs_conn *conn);
void rbx_verbs_conn_expect(struct rbx_verbs_conn *conn);
int rbx_verbs_conn_wait(struct rbx_verbs_conn *conn, uint64_t deadline_ns);
void rbx_verbs_conn_limit_param(const struct rbx_verbs_device *device,
				struct rdma_conn_param *param);
void rbx_verbs_conn_set_ack_timeout(struct rdma_cm_id *id);
void rbx_verbs_conn_name_peer(struct rdma_cm_id *id, char *name);
/* Copies the private data of a message, including padding; returns how many bytes. */
size_t rbx_verbs_private_data_take(const struct rdma_conn_param *param,
				   uint8_t *data, size_t max_bytes);

/* connect.c */
int rbx_verbs_connect(struct rbx_device *device, const struct rbx_qp_init *init,
		      struct rbx_connect_init *connect, struct rbx_qp **qp,
		      char *error);

/* listen.c, accept.c */
struct rbx_verbs_request {
	struct rbx_conn_request request;
	struct rbx_verbs_conn *conn;
	struct rdma_conn_param offer; /* of the peer, without private data */
};

int rbx_verbs_listen(struct rbx_device *device, const char *address,
		     struct rbx_listener **listener, char *error);
void rbx_verbs_close_listener(struct rbx_listener *listener);
int rbx_verbs_get_request(struct rbx_listener *listener,
			  struct rbx_conn_request **request);
int rbx_verbs_accept(struct rbx_conn_request *request,
		     const struct rbx_qp_init *init, const void *private_data,
		     size_t private_data_bytes, struct rbx_qp **qp,
		     char *error);
void rbx_verbs_reject(struct rbx_conn_request *request,
		      const void *private_data, size_t private_data_bytes);

/* events.c */
void rbx_verbs_events_watch(struct rbx_verbs_device *device);
void rbx_verbs_events_unwatch(struct rbx_verbs_device *device);
/* Takes all asynchronous events; false: there will be no more. */
bool rbx_verbs_events_hear(struct rbx_verbs_device *device);
/* Ends all its connections. */
void rbx_verbs_device_fail(struct rbx_verbs_device *device);
int rbx_verbs_get_event(struct rbx_device *device,
			struct rbx_device_event *event);
/* For a device that has failed: completes what the device never will. */
int rbx_verbs_failed_flush(struct rbx_verbs_cq *cq, struct rbx_wc *wcs, int max);

/* cm_thread.c */
int rbx_verbs_cm_thread_start(struct rbx_verbs_device *device, char *error);
void rbx_verbs_cm_thread_stop(struct rbx_verbs_device *device);

#endif
