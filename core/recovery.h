/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * recovery.h - the recovery of a peer's connection, from its break until it is back or given
 * up.
 *
 * A break is: a work request fails, a queue pair ends, the session is lost, or work requests
 * are not answered (stall.h). Then the channel is halted, and threads of the host, one at a
 * time, do one step of the recovery after another. This file says what each step means for
 * the fragments, and peer_state.h when it is due. The host connects, waits and destroys:
 *
 *	lock; step = rbx_recovery_next(recovery, now, &at_ns); unlock
 *	WAIT     until at_ns, or until rbx_recovery_begin()
 *	LOOK     finds out which rings have been polled since the last time, and calls
 *	         rbx_recovery_stands_still(); if true the connection is broken
 *	DRAIN    seizes the channel's combiner: from here on nothing is posted.
 *	         Disconnects the queue pairs, waits until what is posted has come back,
 *	         or until at_ns; destroys them. Then rbx_recovery_drained().
 *	RESUME   until at_ns: resumes the session, after which no earlier work request
 *	         can be carried out, and connects new queue pairs.
 *	         Then rbx_recovery_resumed().
 *	ASK      asks the owner what it can do without; rbx_recovery_withdraw() ends
 *	         those fragments. Then rbx_recovery_asked().
 *	GIVE_UP  tells the owner that the peer is dead. Then rbx_recovery_given_up().
 *
 * From DRAIN to the end the recovery is the combiner. After RESUME and GIVE_UP it combines
 * what was kept and what waits, and thus gives up the role.
 *
 * Locks. The host holds the peer's lock around every function here, unless the comment of a
 * function says otherwise. Nothing blocks or allocates.
 */
#ifndef RBX_RECOVERY_H
#define RBX_RECOVERY_H

#include "core/harvest.h"
#include "core/peer_state.h"
#include "core/stall.h"

enum rbx_recovery_step {
	RBX_RECOVERY_WAIT,
	RBX_RECOVERY_LOOK,
	RBX_RECOVERY_DRAIN,
	RBX_RECOVERY_RESUME,
	RBX_RECOVERY_ASK,
	RBX_RECOVERY_GIVE_UP,
};

struct rbx_recovery {
	struct rbx_channel *channel;
	struct rbx_peer_state state;
	bool closing;
	bool broken_meanwhile; /* noted while it was opened or resumed */

	/* What is to be sent after a resume. */
	struct rbx_fragment *again_first, *again_last;

	struct rbx_stall stalls[RBX_QUEUE_PAIRS_MAX]; /* of each ring */
	uint64_t look_at_ns; /* for stalls */
	uint32_t stalls_count; /* in a row, with no answer between them */
	uint32_t stalled_at_count; /* answers counted at the last stall */
	uint64_t held_until_ns; /* if the owner cannot do without the peer; as of the last break */
};

/* Zeroed memory. timeout_ns: T of peer_state.h. */
void rbx_recovery_init(struct rbx_recovery *recovery,
		       struct rbx_channel *channel, uint64_t timeout_ns);

/* The first connection is up; before that next() is not called. lease_ns: as in
 * rbx_peer_state_opened(). True: it broke meanwhile, so report it again. */
bool rbx_recovery_opened(struct rbx_recovery *recovery, uint64_t lease_ns,
			 uint64_t now_ns);
/* The owner closes the peer: nothing is outstanding, and nothing will be repaired. */
void rbx_recovery_close(struct rbx_recovery *recovery);

/* The connection is broken, perhaps before it was opened. True: that was not known yet, so
 * call begin() and wake the recovery. */
bool rbx_recovery_broken(struct rbx_recovery *recovery);
/* As rbx_peer_state_broken(). */
void rbx_recovery_begin(struct rbx_recovery *recovery, uint64_t heard_ns,
			uint64_t lease_half_ns, bool asks, uint64_t now_ns);

/* Takes the fragments of a harvest that are to be sent again. */
void rbx_recovery_keep(struct rbx_recovery *recovery,
		       struct rbx_harvest *harvest);

/* ---- The steps, by the recovery ---------------------------------------------- */

/* *at_ns: when the step has to end; for WAIT when to ask again, UINT64_MAX: after an event. */
enum rbx_recovery_step rbx_recovery_next(struct rbx_recovery *recovery,
					 uint64_t now_ns, uint64_t *at_ns);

/* If RESUME is due and no thread is free: a try has to begin by then, or it counts as failed.
 * For other steps UINT64_MAX. */
static inline uint64_t
rbx_recovery_try_by_ns(const struct rbx_recovery *recovery)
{
	return recovery->state.phase == RBX_PEER_RESUMING ?
		       recovery->state.deadline_ns :
		       UINT64_MAX;
}
void rbx_recovery_missed(struct rbx_recovery *recovery, uint64_t now_ns);

/*
 * Does the peer answer work requests? It may live and not answer them. Each ring is looked at
 * RBX_STALL_LOOKS times within half of T, which is as long as a peer may be silent.
 * rings_mask: the rings whose pollers have looked as well; of the other rings a look says
 * nothing. True: a ring makes no progress, so the connection is broken.
 */
bool rbx_recovery_stands_still(struct rbx_recovery *recovery,
			       uint32_t rings_mask);

/* The queue pairs are destroyed, and nothing is posted any more. */
void rbx_recovery_drained(struct rbx_recovery *recovery, uint64_t now_ns);

/*
 * err: the result of the try. 0: the channel is open. *ended: fragments that end all the
 * same, to be given back by the poller, or NULL. True: combine, and if *again report once
 * more that the connection is broken. False: the try has failed.
 */
bool rbx_recovery_resumed(struct rbx_recovery *recovery, int err,
			  uint64_t now_ns, struct rbx_fragment **ended,
			  bool *again);

/* Without the lock: fragments that need not wait for this peer, to be ended with
 * -EHOSTUNREACH; or NULL. */
struct rbx_fragment *
rbx_recovery_withdraw(struct rbx_recovery *recovery,
		      bool (*waits)(const struct rbx_fragment *fragment));
/* holds: the peer has data that no other one has. */
void rbx_recovery_asked(struct rbx_recovery *recovery, bool holds,
			uint64_t now_ns);

/* The channel is dead: combine, which refuses what waits. Returns fragments that have ended. */
struct rbx_fragment *rbx_recovery_given_up(struct rbx_recovery *recovery);

#endif
