/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * clock.c - looks at the deadlines of each session, in a workqueue that runs even if
 * memory is short. Messages are handled in the workqueue of their completion queue.
 */
#include "client/session_state.h"
#include "core/lease.h"
#include "kernel/lib/session/sessions.h"

static struct workqueue_struct *ticks;

struct rbx_clock {
	struct rbx_session *session;
	struct delayed_work work;
};

int rbx_sessions_init(void)
{
	ticks = alloc_workqueue("rdmabox", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	return ticks ? 0 : -ENOMEM;
}

void rbx_sessions_exit(void)
{
	destroy_workqueue(ticks);
}

void rbx_session_queue(struct delayed_work *work, unsigned int delay_ms)
{
	queue_delayed_work(ticks, work, msecs_to_jiffies(delay_ms));
}

static void tick(struct work_struct *work)
{
	struct rbx_clock *clock =
		container_of(to_delayed_work(work), struct rbx_clock, work);
	uint64_t due_ns = rbx_session_tick(clock->session, ktime_get_ns());

	/* Not if it was made due earlier meanwhile: then it is queued already. */
	if (due_ns != UINT64_MAX)
		queue_delayed_work(ticks, &clock->work,
				   nsecs_to_jiffies(rbx_lease_since_ns(
					   due_ns, ktime_get_ns())) + 1);
}

int rbx_clock_make(struct rbx_session *session, struct rbx_clock **out)
{
	struct rbx_clock *clock = kzalloc(sizeof(*clock), GFP_KERNEL);

	if (!clock)
		return rbx_error(-ENOMEM, "no memory for a session");
	clock->session = session;
	INIT_DELAYED_WORK(&clock->work, tick);
	*out = clock;
	return 0;
}

void rbx_clock_soon(struct rbx_clock *clock)
{
	mod_delayed_work(ticks, &clock->work, 0);
}

void rbx_clock_free(struct rbx_clock *clock)
{
	cancel_delayed_work_sync(&clock->work);
	kfree(clock);
}
