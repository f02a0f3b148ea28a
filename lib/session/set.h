/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * set.h - the control thread of a context's sessions, and the memory that they share.
 *
 * Each session has a clock here: its deadline, and its place in a bank. A bank has 64
 * clocks that share message buffers and a completion queue; it is made when the first of
 * its clocks is needed. The control thread finds the clock of a completion by its number.
 * It also looks at the clocks that are due.
 */
#ifndef RBX_LIB_SESSION_SET_H
#define RBX_LIB_SESSION_SET_H

#include "client/session_state.h"
#include "lib/session/sessions.h"

/* One for each peer, and a few more for queries. */
#define RBX_SESSIONS_MAX (RBX_PEERS_MAX + 8u)

#define RBX_SESSION_SLOTS (RBX_CLIENT_RECEIVES + RBX_BORROWER_SLOTS)

/* 1,728 completions and 432 KiB of buffers. */
#define RBX_BANK_SESSIONS 64u
#define RBX_BANK_CQ_DEPTH (RBX_BANK_SESSIONS * RBX_SESSION_SLOTS)
#define RBX_BANK_BYTES ((size_t)RBX_BANK_CQ_DEPTH * RBX_WIRE_MESSAGE_BYTES_MAX)
#define RBX_BANKS_MAX                                                          \
	((RBX_SESSIONS_MAX + RBX_BANK_SESSIONS - 1) / RBX_BANK_SESSIONS)

/* A session has one control connection at a time. */
struct rbx_connection {
	struct rbx_clock *clock;
	struct rbx_qp *qp;
	uint32_t generation; /* in wr_id */
};

struct rbx_clock {
	struct rbx_session_set *set;
	struct rbx_bank *bank;
	uint32_t number; /* in the bank */
	struct rbx_connection connection; /* of the session */

	/* Guarded by the set's monitor. */
	struct rbx_session *session; /* NULL: it is free */
	struct rbx_clock *next_free;
	uint64_t due_ns; /* UINT64_MAX: not due */
	uint32_t due_place; /* in struct rbx_due, counted from 1; 0: not there */
};

struct rbx_bank {
	struct rbx_cq *cq;
	uint8_t *buffers; /* the message slots of each clock, by its number */
	struct rbx_mr *mr;
	/* Used by the control thread only. */
	bool is_armed; /* a completion makes its descriptor readable */
	/* The device was unplugged, so its descriptor would report an error for ever. */
	bool is_mute;
	struct rbx_clock clocks[RBX_BANK_SESSIONS];
};

/* The clocks that have a deadline, the next one first: a heap. */
struct rbx_due {
	uint32_t count;
	struct rbx_clock *clocks[RBX_BANKS_MAX * RBX_BANK_SESSIONS];
};

struct rbx_session_set {
	struct rbx_sessions sessions;
	struct rbx_sessions_options options;
	const struct rbx_fabric_ops *ops;
	int wake_fd; /* eventfd: wakes the control thread */
	pthread_t thread;

	/* Held to make a bank: one at a time. Taken before the monitor. */
	pthread_mutex_t making;

	/* Guards all below. Sessions enter it while they are in their own monitor. */
	struct rbx_monitor monitor;
	bool stopping;
	/* The clock whose session the control thread is calling now, or NULL. A thread
	 * that frees a clock waits until it is not the current one. */
	struct rbx_clock *current;
	struct rbx_due due;
	struct rbx_clock *free;
	uint32_t banks_count; /* atomic: grows only */
	struct rbx_bank *banks[RBX_BANKS_MAX];
};

static inline struct rbx_session_set *
rbx_session_set_of(struct rbx_sessions *sessions)
{
	return RBX_CONTAINER_OF(sessions, struct rbx_session_set, sessions);
}

/* set.c: wakes the control thread, unless the caller is that thread. */
void rbx_session_set_wake(struct rbx_session_set *set);

/* bank.c: adds a bank; all its clocks are free. 0 or -errno; sets rbx_last_error(). */
int rbx_bank_add(struct rbx_session_set *set);
void rbx_bank_free(struct rbx_session_set *set, struct rbx_bank *bank);

/* due.c: sets when a clock is due; UINT64_MAX: it is not due any more. Monitor entered. */
void rbx_due_set(struct rbx_due *due, struct rbx_clock *clock, uint64_t at_ns);

/* connection.c: tells the session of a clock of a completion. The session must stay
 * meanwhile. */
void rbx_clock_completed(struct rbx_session *session,
			 const struct rbx_clock *clock,
			 const struct rbx_wc *wc);

/* The number of the clock in its bank, taken from a completion's wr_id. */
static inline uint32_t rbx_clock_number(uint64_t wr_id)
{
	return (uint32_t)(wr_id >> 16) & 0xffff;
}

#endif
