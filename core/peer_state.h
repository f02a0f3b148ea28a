/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer_state.h - is the peer there, and what is to be done about it.
 *
 *            opened                broken
 *   OPENING ------> UP ------------------------> DRAINING
 *      |             ^                              | drained
 *      | failed      |  resumed                     v
 *      +----> DOWN <-+--------------------------- RESUMING <-+
 *                ^        gone, or timeout          |  |     | failed: after
 *                +----------------------------------+  +-----+ a pause, again
 *
 * A broken connection is first drained: every work request posted on it has
 * come back, flushed. Then it is resumed, until the server answers that it does
 * not know us any more, or is not there, or the time is over. What waits
 * meanwhile is sent again after a resume and refused after DOWN.
 *
 * The peer timeout T counts from the last sign of life of the server to the end
 * of the last request. Silence is noticed within the first half of it (lease.h),
 * and the last quarter is left to the last try, which may begin at the end of
 * the third. So tries begin until 3/4 T after the last sign of life, however
 * early the break was noticed; and for T/4 at least, where it was noticed late
 * (who was stopped itself has not heard of anybody).
 */
#ifndef RBX_PEER_STATE_H
#define RBX_PEER_STATE_H

#include "core/port.h"

enum rbx_peer_phase {
	RBX_PEER_OPENING, /* the first connection is being made */
	RBX_PEER_UP, /* requests are posted */
	RBX_PEER_DRAINING, /* broken; what was posted comes back */
	RBX_PEER_RESUMING, /* trying to connect to the same session */
	RBX_PEER_DOWN, /* given up, for good */
};

/* What the host is to do now. */
enum rbx_peer_action {
	RBX_PEER_WAIT, /* nothing until the next event or `at_ns` */
	RBX_PEER_RESUME, /* try to resume the session */
	RBX_PEER_GIVE_UP, /* refuse all requests, tell who uses the peer */
};

struct rbx_peer_state {
	enum rbx_peer_phase phase;
	uint64_t timeout_ns; /* T */
	uint64_t deadline_ns; /* while broken: no try begins later */
	uint64_t next_try_ns; /* while resuming */
	uint64_t pause_ns; /* before the next try */
	uint32_t breaks_count; /* since it was opened */
};

void rbx_peer_state_init(struct rbx_peer_state *state, uint64_t timeout_ns);
void rbx_peer_state_opened(struct rbx_peer_state *state);
/* From UP. heard_ns: the last sign of life. */
void rbx_peer_state_broken(struct rbx_peer_state *state, uint64_t heard_ns,
			   uint64_t now_ns);
void rbx_peer_state_drained(struct rbx_peer_state *state, uint64_t now_ns);
void rbx_peer_state_resumed(struct rbx_peer_state *state);
/* err: -ESTALE, -ECONNREFUSED and -EACCES are final, others are tried again. */
void rbx_peer_state_resume_failed(struct rbx_peer_state *state, int err,
				  uint64_t now_ns);

/* What to do at now_ns; *at_ns: when to ask again, UINT64_MAX: at an event. */
enum rbx_peer_action rbx_peer_state_next(struct rbx_peer_state *state,
					 uint64_t now_ns, uint64_t *at_ns);

#endif
