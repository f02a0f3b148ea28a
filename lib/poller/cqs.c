/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cqs.c - the completion queues of a poller. None can overrun, and there are as many as
 * its queue pairs need.
 *
 * A queue is made while other threads poll. A thread that polls reads the number of
 * queues anew each time. A thread that sleeps has armed only the queues that it knew, so
 * it is woken.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "lib/context.h"
#include "lib/poller/poller.h"

/* Completions that one queue may hold: for each queue pair its send depth and its
 * sentinel receive. */
static uint32_t depth_of(const struct rbx_poller *poller)
{
	return poller->qps_each_count * (RBX_SEND_DEPTH + 1);
}

/* Lets the program's one descriptor report this queue too. */
static int watch(struct rbx_poller *poller, const struct rbx_cq *cq)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (poller->event_fd < 0 ||
	    !epoll_ctl(poller->event_fd, EPOLL_CTL_ADD, cq->event_fd, &event))
		return 0;
	return rbx_error(-errno, "cannot watch a completion queue: %s",
			 strerror(errno));
}

static int cq_add(struct rbx_poller *poller)
{
	const struct rbx_fabric_ops *ops = poller->ctx->device->ops;
	uint32_t count = poller->cq_count;
	char error[RBX_ERROR_TEXT_MAX] = "";
	int err = ops->create_cq(poller->ctx->device, depth_of(poller),
				 &poller->cqs[count], error);

	if (err)
		return rbx_error(err, "%s", error);
	err = watch(poller, poller->cqs[count]);
	if (err) {
		ops->destroy_cq(poller->cqs[count]);
		return err;
	}
	/* Pairs with the loads of a thread that polls. It comes before the wake. */
	RBX_STORE_RELEASE(&poller->cq_count, count + 1);
	rbx_poller_wake(poller);
	return 0;
}

int rbx_poller_cqs_open(struct rbx_poller *poller)
{
	return cq_add(poller);
}

void rbx_poller_cqs_close(struct rbx_poller *poller)
{
	while (poller->cq_count)
		poller->ctx->device->ops->destroy_cq(
			poller->cqs[--poller->cq_count]);
}

int rbx_poller_qp_take_locked(struct rbx_poller *poller, uint32_t *cq_index)
{
	uint32_t i = 0;
	int err = 0;

	while (i < poller->cq_count &&
	       poller->cq_qps_counts[i] == poller->qps_each_count)
		i++;
	if (i == RBX_POLLER_CQS_MAX)
		return rbx_error(-ENOSPC, "a poller serves %u queue pairs at most",
				 RBX_POLLER_QPS_MAX);
	if (i == poller->cq_count)
		err = cq_add(poller);
	if (err)
		return err;
	poller->cq_qps_counts[i]++;
	poller->qps_count++;
	*cq_index = i;
	return 0;
}

void rbx_poller_qp_give_locked(struct rbx_poller *poller, uint32_t cq_index)
{
	poller->cq_qps_counts[cq_index]--;
	poller->qps_count--;
}
