/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * plain.h - a device that keeps the promises of a reliable connection, and no more.
 *
 * It has no queues, caches or limits of its own: everything takes the same time. But it is
 * hostile. Between post and completion our buffer holds junk, half of a write may arrive at
 * the last moment, a read may be torn, a queue pair may fail, and a write that was under way
 * then may arrive later, as long as the other end exists. Code that relies on more than is
 * promised fails here.
 *
 *	device.c   devices, domains, completion queues
 *	keys.c     registered memory
 *	connect.c  listeners, queue pairs, their end
 *	post.c     work requests and receives go in
 *	carry.c    and are carried out, in order, in two steps: they arrive, they
 *	           complete
 *	message.c  what takes a receive of the other end
 *	fail.c     what happens to those under way when a queue pair fails
 */
#ifndef RBX_SIM_PLAIN_H
#define RBX_SIM_PLAIN_H

#include "core/limits.h"
#include "sim/events.h"
#include "sim/fabric.h"
#include "sim/fiber.h"

/* The time from end to end, unless the world has asked for another. */
#define RBX_PLAIN_WAY_NS 1500u
/* Random addition to it, at most; drawn for each chain. */
#define RBX_PLAIN_JITTER_NS 500u
/* How long a peer may not answer before it counts as dead: the retries of a NIC. */
#define RBX_PLAIN_RETRY_NS 1000000000u
/* How long a receiver without a posted receive is waited for. */
#define RBX_PLAIN_NOT_READY_NS 200000000u
/* How often both are checked. */
#define RBX_PLAIN_LOOK_AGAIN_NS 1000000u
/* A server that cannot be connected to is given up within this time, or not at all. */
#define RBX_PLAIN_FELT_NS 10000000000u
/* A replica is lost as soon as the error has been polled. */
#define RBX_PLAIN_STALE_FELT_NS 50000000u
/* The cost of a look at an empty completion queue. */
#define RBX_PLAIN_POLL_NS 200u
/* After so many in a row it costs twice as much. */
#define RBX_PLAIN_POLLS 256u

/* The lkey that covers all memory of a node, if there is one. */
#define RBX_PLAIN_ANY_LKEY 0xffu

struct plain_device {
	struct rbx_device base;
	uint32_t node;
};

struct plain_domain {
	struct rbx_domain base;
};

struct plain_mr {
	struct rbx_mr base;
	const struct rbx_domain *domain; /* NULL: the device's */
	uint32_t rights;
	uint32_t node;
	bool is_ended; /* by a SEND with invalidate; it still has to be deregistered */
	uint32_t halves_count; /* work requests that will access it once more */
};

struct plain_cq {
	struct rbx_cq base;
	struct rbx_wc *wcs; /* a ring of depth_count */
	uint32_t first, count;
	uint32_t empty_count; /* looks in a row that found nothing */
	bool is_armed;
};

struct plain_work {
	uint64_t wr_id;
	uint64_t arrive_ns;
	uint64_t complete_ns;
	uint64_t remote_addr;
	uint64_t compare_add, swap; /* atomics */
	uint32_t rkey;
	uint32_t immediate; /* or the key that it invalidates */
	uint32_t length_bytes;
	int32_t status;
	uint8_t opcode;
	uint8_t flags;
	uint8_t sge_count;
	/* These bytes move at completion; the others have moved already. */
	bool is_half;
	uint32_t half_from, half_to;
};

struct plain_recv {
	uint64_t wr_id;
	uint64_t length_bytes; /* of all its entries */
	uint32_t sge_count;
};

enum plain_qp_state {
	PLAIN_CONNECTING, /* takes receives; nothing else is possible */
	PLAIN_CONNECTED,
	PLAIN_FAILING, /* a work request has failed and will complete */
	PLAIN_ERROR, /* all is flushed */
};

struct plain_request;

struct plain_qp {
	struct rbx_qp base;
	struct plain_qp *next, *previous; /* in the list of all */
	struct plain_qp *peer; /* NULL: none, or it is destroyed */
	struct plain_request *request; /* while it connects */
	const struct rbx_domain *domain;
	enum plain_qp_state state;
	bool is_mute; /* in error, and does not flush what is posted */
	bool is_accepted; /* the other end asked for the connection */
	uint32_t node;
	uint32_t number;
	uint32_t max_sge;
	/* Counted from the start; modulo the depth they are slots. */
	uint32_t completed_count, arrived_count, posted_count;
	struct plain_work *works;
	struct rbx_sge *sges; /* max_sge for each work request */
	uint32_t recv_first, recv_count, recv_depth_count;
	uint32_t recv_max_sge;
	struct plain_recv *recvs;
	struct rbx_sge *recv_sges; /* recv_max_sge for each receive */
	uint64_t silent_since_ns; /* the peer does not answer since then; 0: it does */
	struct rbx_sim_event arrives;
	struct rbx_sim_event completes;
	struct rbx_sim_event dreams; /* of a mute one: writes to our memory */
	struct rbx_sim_event hears; /* the message that the other end has ended */
};

struct plain_listener {
	struct rbx_listener base;
	struct plain_listener *next;
	uint32_t node;
	uint32_t port;
	struct plain_request *first, *last;
};

struct plain_request {
	struct rbx_conn_request base;
	struct plain_request *next; /* at the listener */
	struct plain_qp *qp; /* of the connecting side; NULL: it has given up */
	struct rbx_sim_event answers;
	struct rbx_sim_waiters waiters; /* the fiber in connect() */
	bool is_answered;
	bool was_taken; /* by accept() or reject(); or it never will be */
	int result;
	uint8_t reply[RBX_ACCEPT_DATA_MAX];
	size_t reply_bytes;
};

/* device.c */
uint64_t plain_way_ns(void);
/* The way back of an acknowledgement. */
uint64_t plain_way_back_ns(void);
bool plain_reaches(uint32_t from_node, uint32_t to_node);
/* It uses the memory of another node, and may. */
void plain_fence_check(uint32_t node);
void plain_cq_add(struct rbx_cq *cq, const struct rbx_wc *wc);
/* Junk in all fields that are not valid in a completion with an error. */
void plain_cq_add_error(struct rbx_cq *cq, struct plain_qp *qp, uint64_t wr_id,
			int32_t status);
void plain_cq_forget(struct rbx_cq *cq, const struct rbx_qp *qp);
extern struct plain_qp *plain_qps;
uint64_t plain_draw(uint64_t low, uint64_t high);
void plain_scribble(void *bytes, size_t length);

/* keys.c */
int plain_register(struct rbx_device *device, const struct rbx_mr_init *inits,
		   size_t count, struct rbx_mr **mrs, char *error);
void plain_deregister(struct rbx_device *device, struct rbx_mr **mrs,
		      size_t count);
/* The memory of a key; NULL: the key is not valid for that. */
struct plain_mr *plain_key(uint32_t key);
struct plain_mr *plain_local(const struct plain_qp *qp,
			     const struct rbx_sge *sge, uint32_t rights);
struct plain_mr *plain_remote(const struct plain_qp *target, uint32_t rkey,
			      uint64_t addr, uint32_t length_bytes,
			      uint32_t rights);
/* Ends a key by a SEND to `target`; false: it may not end this key. */
bool plain_key_end(const struct plain_qp *target, uint32_t key);
void plain_keys_stop(uint32_t node);
void plain_keys_begin(void);

/* connect.c */
int plain_connect(struct rbx_device *device, const struct rbx_qp_init *init,
		  struct rbx_connect_init *connect, struct rbx_qp **qp,
		  char *error);
int plain_listen(struct rbx_device *device, const char *address,
		 struct rbx_listener **listener, char *error);
void plain_close_listener(struct rbx_listener *listener);
int plain_get_request(struct rbx_listener *listener,
		      struct rbx_conn_request **request);
int plain_accept(struct rbx_conn_request *request,
		 const struct rbx_qp_init *init, const void *private_data,
		 size_t private_data_bytes, struct rbx_qp **qp, char *error);
void plain_reject(struct rbx_conn_request *request, const void *private_data,
		  size_t private_data_bytes);
void plain_disconnect(struct rbx_qp *qp);
void plain_destroy_qp(struct rbx_qp *qp);
void plain_listeners_stop(uint32_t node);
/* Frees it; its peer is told unless the power failed. */
void plain_qp_free(struct plain_qp *qp);

/* post.c */
int plain_post_send(struct rbx_qp *qp, struct rbx_wr *first,
		    struct rbx_wr **bad);
int plain_post_recv(struct rbx_qp *qp, struct rbx_recv_wr *first,
		    struct rbx_recv_wr **bad);
/* A work request is under way from here on (1), or no longer (-1). */
void plain_flight(const struct plain_qp *qp, uint32_t number, int sign);
void plain_in_flight(uint32_t node, uint64_t *bytes, uint32_t *work_requests);
struct rbx_sge *plain_sges(const struct plain_qp *qp, uint32_t number);
struct plain_work *plain_work(const struct plain_qp *qp, uint32_t number);
struct rbx_sge *plain_recv_sges(const struct plain_qp *qp, uint32_t slot);
/* Whether it writes to our own memory. */
bool plain_brings(const struct plain_work *work);

/* carry.c */
void plain_arrives(struct rbx_sim_event *event);
void plain_completes(struct rbx_sim_event *event);
/* Moves the second half of a work request whose first half has moved. */
void plain_second_half(struct plain_qp *qp, uint32_t number);
/* The same for all before this one. */
void plain_earlier_halves(struct plain_qp *qp, uint32_t number);
bool plain_local_is_good(const struct plain_qp *qp, uint32_t number,
			 uint32_t rights);
/* Reads, writes or changes the memory of the other end; returns the status. */
int32_t plain_access(struct plain_qp *qp, uint32_t number);

/* message.c */
bool plain_is_message(const struct plain_work *work);
/* -EAGAIN: the receiver is not ready yet. */
int32_t plain_deliver(struct plain_qp *qp, uint32_t number);

/* fail.c */
/* Lets writes that have not arrived arrive later, or not. */
void plain_strays_send(const struct plain_qp *qp);
/* Flushes everything; the other end is told. */
void plain_fail(struct plain_qp *qp);
/* What has moved in part stays so. */
void plain_half_forget(struct plain_work *work);
void plain_hears(struct rbx_sim_event *event);
void plain_dreams(struct rbx_sim_event *event);

#endif
