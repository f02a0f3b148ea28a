/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * news.c - the clock of a session, and what its owner is told.
 *
 * Messages come in the workqueue of their completion queue, the clock is looked at in
 * one of ours, which works while memory is short. Whoever of them finds news tells it,
 * and until all of it is told the other one waits (news_lock).
 */
#include <linux/ktime.h>

#include "kernel/lib/session/state.h"

static struct workqueue_struct *ticks;

int rbx_sessions_init(void)
{
	ticks = alloc_workqueue("rdmabox", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	return ticks ? 0 : -ENOMEM;
}

void rbx_sessions_exit(void)
{
	destroy_workqueue(ticks);
}

/* ---- News --------------------------------------------------------------------*/

/* What belongs to a piece of news stays until the next is asked for. */
static void tell(struct rbx_session *session, enum rbx_borrower_news news,
		 const char *why)
{
	const struct rbx_session_events *events = &session->events;
	const struct rbx_session_listener *to = &session->listener;
	struct rbx_borrower *borrower = &session->borrower;

	switch (news) {
	case RBX_BORROWER_NO_NEWS:
		break;
	case RBX_BORROWER_LOST:
		events->lost(events->user, why);
		break;
	case RBX_BORROWER_EVICT:
		events->evict(events->user, &borrower->eviction);
		break;
	case RBX_BORROWER_HEAR:
		to->message(to->peer, borrower->letter.bytes,
			    borrower->letter.length_bytes, to->user);
		break;
	case RBX_BORROWER_ENDS:
		rbx_letter_ends_tell(&borrower->ends);
		break;
	}
}

void rbx_session_tell_news(struct rbx_session *session)
{
	struct rbx_borrower *borrower = &session->borrower;
	enum rbx_borrower_news news;

	lockdep_assert_held(&session->news_lock);
	WRITE_ONCE(session->teller, current);
	spin_lock_irq(&session->lock);
	while ((news = rbx_borrower_news(borrower)) != RBX_BORROWER_NO_NEWS) {
		const char *why = borrower->why;

		spin_unlock_irq(&session->lock);
		tell(session, news, why);
		spin_lock_irq(&session->lock);
		if (news == RBX_BORROWER_HEAR)
			rbx_borrower_letter_heard(borrower);
		rbx_session_pump_locked(session);
	}
	spin_unlock_irq(&session->lock);
	WRITE_ONCE(session->teller, NULL);
}

/* ---- The clock -----------------------------------------------------------------*/

void rbx_session_tick(struct work_struct *work)
{
	struct rbx_session *session =
		container_of(to_delayed_work(work), struct rbx_session, tick);
	uint64_t due_ns;

	mutex_lock(&session->news_lock);
	spin_lock_irq(&session->lock);
	due_ns = rbx_borrower_tick(&session->borrower, ktime_get_ns());
	rbx_session_pump_locked(session);
	spin_unlock_irq(&session->lock);
	rbx_session_tell_news(session);
	mutex_unlock(&session->news_lock);
	/* Not if somebody wants it sooner: then it is queued already. */
	if (due_ns != UINT64_MAX)
		queue_delayed_work(ticks, &session->tick,
				   nsecs_to_jiffies(rbx_lease_since_ns(
					   due_ns, ktime_get_ns())) + 1);
}

void rbx_session_queue(struct delayed_work *work, unsigned int delay_ms)
{
	queue_delayed_work(ticks, work, msecs_to_jiffies(delay_ms));
}

void rbx_session_tick_soon(struct rbx_session *session)
{
	mod_delayed_work(ticks, &session->tick, 0);
}
