/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * deadlines.c - the deadlines of a peer, and how much time counts for them.
 *
 * Two things have deadlines: a message waits for a receive of the peer (send_queue.c), and a
 * peer keeps shared receives that others wait for (shared_receives.c). While there are any,
 * the service thread looks at each qp every SOFT_TICK_MS. The time since its last look counts
 * only if this side has done its part:
 * - It does not count if no thread has looked at the socket since then, although there is
 *   something to read, or room for what the peer is to be told.
 * - If the look comes late, only SOFT_TICK_COUNTS_MS of it count. The process was stopped,
 *   or got no processor, and it is not known yet what the peer did meanwhile.
 *
 * What a connection has moved does not include what the system still holds for it: a peer
 * that does not read moves nothing.
 */
#include "deadlines.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "send_queue.h"
#include "shared_receives.h"

uint64_t soft_qp_unacknowledged(const struct soft_qp *qp)
{
	const uint64_t unsent = qp->tls ? soft_tls_unsent(qp->tls) : 0;
	int bytes = 0;

	if (ioctl(qp->fd, SIOCOUTQ, &bytes) || bytes < 0)
		return unsent;
	return (uint64_t)bytes + unsent;
}

uint64_t soft_qp_moved(const struct soft_qp *qp)
{
	return qp->moved_bytes - soft_qp_unacknowledged(qp);
}

static bool is_neglected(const struct soft_qp *qp)
{
	struct pollfd ready = {
		.fd = qp->fd,
		.events = POLLIN | (qp->output_blocked ? POLLOUT : 0),
	};

	return qp->seen.looks_count == qp->looks_count && poll(&ready, 1, 0) > 0;
}

static uint64_t counted_ns(const struct soft_qp *qp, uint64_t passed_ns)
{
	const uint64_t most_ns = SOFT_TICK_COUNTS_MS * 1000000ull;

	if (is_neglected(qp))
		return 0;
	return passed_ns < most_ns ? passed_ns : most_ns;
}

static void check_locked(struct soft_qp *qp, uint64_t now_ns, uint64_t passed_ns)
{
	const uint64_t counts_ns = counted_ns(qp, passed_ns);

	if (qp->is_stalled)
		soft_send_queue_check_stall(qp, counts_ns);
	if (qp->srq && qp->state == SOFT_QP_CONNECTED)
		soft_srq_check_promise(qp, now_ns, counts_ns);
	qp->seen.looks_count = qp->looks_count;
	qp->seen.moved_bytes = soft_qp_moved(qp);
}

void soft_qp_check_deadlines(struct soft_qp *qp, uint64_t now_ns, uint64_t passed_ns)
{
	soft_qp_lock(qp);
	if (qp->state == SOFT_QP_CONNECTED && (qp->is_stalled || qp->srq))
		check_locked(qp, now_ns, passed_ns);
	soft_qp_unlock(qp);
}
