/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poller.c - takes completions, in a thread; see poller.h.
 *
 * core/poll_round.h tells what a round does. The thread looks once more between arming
 * and sleeping, so the interrupt handler only has to wake it. In newer kernels the
 * handler may not poll anyway, as Soft-RoCE calls it under the lock of the queue.
 */
#include "kernel/lib/poller/poller.h"

#include <linux/ktime.h>

#include "kernel/lib/context.h"
#include "kernel/lib/threads.h"

void rbx_poller_end(struct rbx_poller *poller, struct rbx_fragment *list)
{
	rbx_poll_round_end(&poller->round, list);
	wake_up(&poller->wait);
}

void rbx_poller_unpark(struct rbx_poller *poller)
{
	rbx_poll_round_unpark(&poller->round);
	wake_up(&poller->wait);
}

void rbx_poller_visit(struct rbx_poller *poller)
{
	rbx_poller_lock(poller);
	rbx_poller_unlock(poller);
}

static void completion_event(struct ib_cq *cq, void *context)
{
	struct rbx_poller *poller = context;

	RBX_STORE_RELEASE(&poller->event, true);
	wake_up(&poller->wait);
}

/* Takes the completions of one queue. */
static uint32_t take(struct rbx_poller *poller, struct ib_cq *cq)
{
	int count, i;

	if (unlikely(!cq))
		return 0;
	count = ib_poll_cq(cq, (int)rbx_poll_policy_ask(&poller->round.policy),
			   poller->wcs);
	if (count <= 0)
		return 0;
	poller->round.found_ns = ktime_get_ns();
	for (i = 0; i < count; i++)
		poller->wcs[i].wr_cqe->done(cq, &poller->wcs[i]);
	return (uint32_t)count;
}

static uint32_t take_all(struct rbx_poller *poller)
{
	uint32_t count = 0, i;

	for (i = 0; i < poller->cqs_count; i++)
		count += take(poller, poller->cqs[i]);
	return count;
}

static uint32_t poll(struct rbx_poller *poller)
{
	struct rbx_context *ctx = poller->ctx;
	struct rbx_poll_found found;
	uint32_t count = rbx_poll_round_settle(&poller->round, &ctx->window,
					       take_all(poller), ktime_get_ns, &found);

	if (!count)
		return 0;
	rbx_drive_done(found.done);
	rbx_drive_done(found.ended);
	if (rbx_context_unpark(ctx))
		rbx_poller_unpark(poller);
	return count;
}

/* Bounded by the most completions that there can be. */
void rbx_poller_sweep(struct rbx_poller *poller)
{
	uint32_t taken_count = 0, found_count, most_count = 0, i;

	rbx_poller_lock(poller);
	for (i = 0; i < poller->cqs_count; i++)
		if (poller->cqs[i])
			most_count += (uint32_t)poller->cqs[i]->cqe;
	do {
		found_count = poll(poller);
		taken_count += found_count;
	} while (found_count && taken_count < most_count);
	rbx_poller_unlock(poller);
}

static bool has_news(const struct rbx_poller *poller)
{
	return RBX_LOAD_ACQUIRE(&poller->event) ||
	       RBX_LOAD_ACQUIRE(&poller->round.unpark) ||
	       RBX_LOAD_ACQUIRE(&poller->round.ended) || kthread_should_stop();
}

static void arm(struct rbx_poller *poller)
{
	uint32_t i;

	RBX_EXCHANGE(&poller->event, false);
	rbx_poll_count(&poller->round.counters.arms, 1);
	for (i = 0; i < poller->cqs_count; i++)
		if (poller->cqs[i])
			(void)ib_req_notify_cq(poller->cqs[i], IB_CQ_NEXT_COMP);
}

bool rbx_poller_has_looked(const struct rbx_poller *poller,
			   uint64_t *polls_count)
{
	uint64_t count = RBX_LOAD_RELAXED(&poller->round.counters.polls);

	if (count != *polls_count) {
		*polls_count = count;
		return true;
	}
	return RBX_LOAD_RELAXED(&poller->asleep) &&
	       !RBX_LOAD_ACQUIRE(&poller->event) &&
	       !RBX_LOAD_ACQUIRE(&poller->round.unpark);
}

static void sleep_for_event(struct rbx_poller *poller)
{
	rbx_poller_unlock(poller);
	RBX_STORE_RELAXED(&poller->asleep, true);
	wait_event_idle(poller->wait, has_news(poller));
	RBX_STORE_RELAXED(&poller->asleep, false);
	rbx_poller_lock(poller);
	rbx_poll_count(&poller->round.counters.wakeups, 1);
}

static int poller_main(void *argument)
{
	struct rbx_poller *poller = argument;

	rbx_poller_lock(poller);
	while (!kthread_should_stop()) {
		switch (rbx_poll_round_next(&poller->round, poll(poller),
					    ktime_get_ns)) {
		case RBX_POLL_AGAIN:
			break;
		case RBX_POLL_ARM:
			arm(poller);
			break;
		case RBX_POLL_SLEEP:
			sleep_for_event(poller);
			break;
		}
		/* For threads that wait for the lock, and other tasks of this processor. */
		rbx_poller_unlock(poller);
		cond_resched();
		rbx_poller_lock(poller);
	}
	rbx_poller_unlock(poller);
	return 0;
}

static struct ib_cq *cq_make(struct rbx_poller *poller,
			     struct ib_device *device, uint32_t depth_count)
{
	struct ib_cq_init_attr attr = {
		.cqe = depth_count,
		.comp_vector = poller->number %
			       (uint32_t)max(device->num_comp_vectors, 1),
	};

	return ib_create_cq(device, completion_event, NULL, poller, &attr);
}

static void cq_set(struct rbx_poller *poller, uint32_t index, struct ib_cq *cq)
{
	rbx_poller_lock(poller);
	poller->cqs[index] = cq;
	poller->cqs_count = max(poller->cqs_count, index + 1);
	rbx_poller_unlock(poller);
	rbx_poller_unpark(poller); /* makes it arm its queues */
}

int rbx_poller_bind(struct rbx_poller *poller, struct ib_device *device,
		    uint32_t depth_count)
{
	uint32_t i, count = max(poller->cqs_count, 1u);

	for (i = 0; i < count; i++) {
		struct ib_cq *cq = cq_make(poller, device, depth_count);

		if (IS_ERR(cq)) {
			rbx_poller_unbind(poller);
			return PTR_ERR(cq);
		}
		cq_set(poller, i, cq);
	}
	return 0;
}

void rbx_poller_unbind(struct rbx_poller *poller)
{
	uint32_t i;

	for (i = 0; i < poller->cqs_count; i++) {
		struct ib_cq *cq = poller->cqs[i];

		rbx_poller_lock(poller);
		poller->cqs[i] = NULL;
		rbx_poller_unlock(poller);
		if (cq)
			ib_destroy_cq(cq);
	}
}

int rbx_poller_grow(struct rbx_poller *poller, struct ib_device *device,
		    uint32_t depth_count)
{
	struct ib_cq *cq = NULL;

	if (device) {
		cq = cq_make(poller, device, depth_count);
		if (IS_ERR(cq))
			return PTR_ERR(cq);
	}
	cq_set(poller, poller->cqs_count, cq);
	return 0;
}

int rbx_poller_open(struct rbx_poller *poller, struct rbx_context *ctx,
		    uint32_t number, const struct rbx_poll_rule *rule,
		    const char *name, int node)
{
	char thread_name[64];

	poller->ctx = ctx;
	poller->number = number;
	init_waitqueue_head(&poller->wait);
	mutex_init(&poller->lock);
	rbx_poll_policy_init(&poller->round.policy, rule);
	snprintf(thread_name, sizeof(thread_name), "%s/%u", name, number);
	poller->thread = rbx_kthread_create(poller_main, poller, node,
					    thread_name);
	if (IS_ERR(poller->thread))
		return PTR_ERR(poller->thread);
	wake_up_process(poller->thread);
	return 0;
}

void rbx_poller_close(struct rbx_poller *poller)
{
	kthread_stop(poller->thread);
}
