/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * queue_pair.h - one end of a connection: its queues, its socket, its state.
 *
 * A qp has one lock, which guards all of it. Each part of it belongs to one file, named above
 * the part.
 */
#ifndef SOFT_QUEUE_PAIR_H
#define SOFT_QUEUE_PAIR_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "../fabric.h"
#include "completion.h"
#include "device.h"
#include "frame.h"
#include "limits.h"
#include "tls.h"

struct soft_device;
struct soft_mappings;
struct soft_mr;

enum soft_qp_state {
	SOFT_QP_CONNECTED, /* work requests are carried out */
	SOFT_QP_REFUSING, /* in error, and the peer was not told why yet */
	SOFT_QP_ERROR, /* in error, the socket is shut down */
	SOFT_QP_DESTROYED, /* no completion and no call may come any more */
};

/* A posted work request. Its pieces of memory are in send_pieces. */
struct soft_send {
	struct soft_wire_frame header;
	struct soft_wire_atomic atomic; /* sent with it, if it is an atomic */
	uint64_t wr_id;
	uint32_t length_bytes;
	uint8_t piece_count;
	uint8_t opcode; /* enum rbx_opcode */
	uint8_t flags;
	bool mapped; /* done by memcpy when all before it are done */
};

/* A posted receive. Its pieces of memory are in recv_pieces. */
struct soft_receive {
	uint64_t wr_id;
	uint64_t length_bytes; /* of all of them */
};

/* A READ or an atomic of the peer that is to be answered. */
struct soft_response {
	struct soft_wire_frame header;
	uint32_t sequence;
	uint32_t rkey;
	uint64_t addr;
	uint32_t length_bytes;
	bool has_value; /* an atomic, which is done: the answer is here */
	uint64_t value; /* in the byte order of the wire */
};

/* Another frame to be sent. */
struct soft_control {
	struct soft_wire_frame header;
	struct soft_wire_map map; /* only after a MAP_ANSWER */
	uint32_t length_bytes; /* of both */
	int fd; /* sent with it and closed then; -1: none */
};

/* The kinds of frame in the output. */
enum soft_output_kind {
	SOFT_OUTPUT_NONE,
	SOFT_OUTPUT_RESPONSE,
	SOFT_OUTPUT_ACK,
	SOFT_OUTPUT_CONTROL,
	SOFT_OUTPUT_REQUEST,
};

/* The destination of a payload of which a part has come. */
struct soft_input_payload {
	uint64_t left_bytes;
	uint32_t length_bytes; /* of all of it */
	uint8_t opcode; /* of its frame; so are flags and immediate */
	uint8_t flags;
	uint32_t immediate;
	uint32_t rkey; /* WRITE: looked up again before each part */
	uint64_t addr; /* WRITE: of the next byte */
	const struct iovec *pieces; /* the rest of the destination */
	size_t piece_skip_bytes; /* into the first of them */
	struct iovec piece; /* WRITE: the one piece */
};

/* What the peer had been promised at some check of deadlines, and has not used since. */
struct soft_promise_seen {
	uint64_t kept_ns; /* for so long, as far as it counts (deadlines.c) */
	uint64_t moved_bytes; /* of the qp at that time */
	uint32_t promised; /* counted as credit is */
};

/* The state when deadlines were last checked. */
struct soft_deadlines_seen {
	uint32_t looks_count;
	uint64_t moved_bytes;
};

struct soft_qp {
	struct rbx_qp qp;
	struct soft_device *device;
	const struct soft_domain *domain;
	struct soft_qp *next, **previous; /* in the device's list */
	atomic_int references; /* release and acquire: the last one frees */
	struct rbx_raised_event ended; /* its qp is NULL: no event is wanted */
	bool served;
	uint64_t served_token; /* in the set of the service thread */
	uint64_t send_token, recv_token; /* in the polled sets of the cqs */

	/*
	 * Threads that wait for the lock other than to look for input. A poller that finds
	 * one gives way; otherwise it would keep the lock to itself. Relaxed: only a hint.
	 */
	atomic_uint waiting;
	pthread_mutex_t lock; /* guards all below, except the two _freed */
	enum soft_qp_state state;
	int fd;
	struct soft_tls *tls; /* between the qp and its socket; NULL: the socket is the stream */
	struct soft_cq *poller; /* the cq whose poll() holds the lock */
	uint32_t looks_count; /* calls of soft_qp_progress() that had the lock */
	/* Payload that has come, and that the socket has taken. Headers do not count: a peer
	 * could move any number of them without a right to anything. */
	uint64_t moved_bytes;
	struct soft_deadlines_seen seen; /* deadlines.c */

	/*
	 * send_queue.c. Indexes only grow; in order:
	 *   send_freed   places from here on are taken (set by poll)
	 *   send_done    the oldest that is not done
	 *   send_started the oldest whose frame is not all in the socket
	 *   send_posted  the next to post
	 */
	atomic_uint send_freed;
	uint32_t send_done, send_started, send_posted;
	/* The memory of the request at bad_index is invalid: it fails when all before it are
	 * done, and nothing is sent from there on. */
	bool has_bad;
	uint32_t bad_index;
	/*
	 * Requests done by memcpy, which have an index but no sequence on the
	 * wire: index = sequence + mapped_count. It only changes while no
	 * frame of a request is outstanding.
	 */
	uint32_t mapped_count;
	uint32_t send_mask;
	uint32_t max_sge;
	struct soft_send *sends;
	struct iovec *send_pieces; /* max_sge of each place */
	uint8_t *inline_bytes; /* qp.max_inline_bytes of each place */
	uint32_t reads_outstanding; /* and atomics: started and not done */
	uint32_t sends_started; /* messages, counted as credit is */
	uint32_t send_credit; /* receives that the peer has posted, as told */
	bool is_stalled; /* a SEND waits for credit */
	uint64_t stalled_ns; /* for so long, as far as it counts (deadlines.c) */
	bool asks_credit; /* the peer's receives are shared */
	uint32_t send_asked; /* credit that the peer was asked for */

	/* receive_queue.c: a message takes the one at recv_done, poll frees it. */
	atomic_uint recv_freed;
	uint32_t recv_done, recv_posted;
	uint32_t recv_depth_count, recv_mask;
	uint32_t recv_max_sge;
	struct soft_receive *receives;
	struct iovec *recv_pieces; /* recv_max_sge of each place */
	uint32_t credit_told;

	/* shared_receives.c: if there is an srq, recv_posted counts what the peer was
	 * promised, and the only place has the receive of the message that is coming. */
	struct soft_srq *srq; /* NULL: the qp has receives of its own */
	uint32_t recv_wanted; /* that the peer has asked for, counted as credit is */
	bool has_taken;
	uint32_t taken_place;
	bool waits_for_receive; /* under the lock of the srq, as is the entry */
	TAILQ_ENTRY(soft_qp) waiting_entry;
	uint64_t waiting_since_ns; /* the same lock */
	struct soft_promise_seen promise_seen;

	/* target.c: the peer's requests. */
	uint32_t expected; /* sequence of the next one */
	uint32_t acked; /* the oldest that the peer was not told to be done */
	uint32_t ack_wanted; /* the peer waits for an acknowledgement of those before this */
	uint32_t response_head, response_tail;
	uint32_t peer_depth_count; /* as it says */
	uint32_t answers_max_count, response_mask;
	struct soft_response *responses;

	/* output.c */
	bool output_blocked; /* the socket is full, or a turn ended */
	int output_error; /* errno of a dead socket, which the reader will report */
	uint8_t partial_kind; /* the frame of which a part was sent */
	uint64_t partial_bytes;
	bool answers; /* its acknowledgements may be held back */
	bool holds_ack; /* one is held back, see completion.c */
	struct soft_wire_frame ack; /* the last one made */
	uint32_t ack_sequence; /* the sequence that it acknowledges, plus one */
	uint32_t ack_credit;
	uint32_t control_head, control_tail;
	struct soft_control controls[SOFT_CONTROL_MAX];

	/* receive.c */
	uint8_t *lookahead;
	uint32_t lookahead_begin, lookahead_end;
	uint32_t last_payload_bytes; /* a guess at the size of the next */
	struct soft_input_payload payload;
	uint8_t fd_count;
	int fds[SOFT_MAP_FDS_MAX + 1]; /* came with the stream; -1: one was lost */

	struct soft_mappings *mappings; /* mapping.c; NULL: qp.mapped is false */
};

static inline struct soft_qp *soft_qp_of(struct rbx_qp *base)
{
	return (struct soft_qp *)base;
}

/* What connect() and accept() know about the other end. */
struct soft_peer {
	int fd; /* of the connected socket; taken on success, and so is tls */
	struct soft_tls *tls; /* or NULL */
	uint32_t send_depth_count;
	bool shares_receives;
	char name[RBX_NAME_MAX];
	bool mapped;
};

int soft_qp_create(struct soft_device *device, const struct rbx_qp_init *init,
		   const struct soft_peer *peer, struct soft_qp **qp,
		   char *error);
/* Makes a qp that no thread serves yet; NULL: no memory. */
struct soft_qp *soft_qp_make(struct soft_device *device,
			     const struct rbx_qp_init *init,
			     const struct soft_peer *peer);
void soft_qp_free(struct soft_qp *qp);
/* Checks what a caller asks for before anything is sent. */
int soft_qp_init_check(const struct rbx_qp_init *init, char *error);
void soft_disconnect(struct rbx_qp *qp);
void soft_destroy_qp(struct rbx_qp *qp);

static inline void soft_qp_hold(struct soft_qp *qp)
{
	atomic_fetch_add_explicit(&qp->references, 1, memory_order_relaxed);
}

void soft_qp_put(struct soft_qp *qp);

static inline void soft_qp_lock(struct soft_qp *qp)
{
	if (!pthread_mutex_trylock(&qp->lock))
		return;
	atomic_fetch_add_explicit(&qp->waiting, 1, memory_order_relaxed);
	pthread_mutex_lock(&qp->lock);
	atomic_fetch_sub_explicit(&qp->waiting, 1, memory_order_relaxed);
}

static inline void soft_qp_unlock(struct soft_qp *qp)
{
	pthread_mutex_unlock(&qp->lock);
}

/*
 * Does all that the socket has. `cq`: the one being polled, or NULL in the service thread.
 * Returns whether bytes came in.
 */
bool soft_qp_progress(struct soft_qp *qp, struct soft_cq *cq);
/* Sends an acknowledgement that was held back, if it still is. */
void soft_qp_send_held(struct soft_qp *qp);

/* All that follow are called with the lock held. */

/*
 * Puts the qp in error: the send at `index` completes with `status`, all
 * else is flushed, the socket is shut down. No effect on a qp in error.
 */
void soft_qp_fail(struct soft_qp *qp, uint32_t index, int status);
/* The peer broke the protocol: notes how, and cuts it off. */
void soft_qp_cut_off(struct soft_qp *qp, const char *reason);
/* The peer's request failed: flushes, tells the peer, then shuts down. */
void soft_qp_refuse(struct soft_qp *qp, uint32_t sequence, uint8_t status);
/* The socket failed with this errno, or 0 at its end. EFAULT: memory of the peer's request;
 * bad memory of our own requests is found elsewhere. */
void soft_qp_lose(struct soft_qp *qp, int error);
/* Asks to be called when the socket takes output, or no longer. */
void soft_qp_watch_output(struct soft_qp *qp, bool output);

void soft_qp_push_send(struct soft_qp *qp, uint32_t index, int status);
/* wc has everything except the qp. */
void soft_qp_push_receive(struct soft_qp *qp, uint32_t index, struct rbx_wc wc);

/* Whether a work request of our own may use this memory; as soft_keys_find(). */
static inline bool soft_qp_may_use(struct soft_qp *qp,
				   const struct rbx_sge *sge, uint32_t rights)
{
	return soft_keys_cover(&qp->device->keys, qp->domain, sge, rights);
}

#endif
