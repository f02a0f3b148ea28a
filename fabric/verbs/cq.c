/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cq.c - completion queues and how to sleep on them.
 *
 * Each has a completion channel of its own, whose descriptor is the event_fd. An event that
 * was taken must be acknowledged before the queue is destroyed, because the destruction waits
 * for it. Acknowledging takes a lock, so it is done for many events at a time.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/verbs/explain.h"
#include "fabric/verbs/verbs.h"

#define ACK_BATCH_COUNT 64

/* Events that may wait to be consumed: the kernel allocates memory for each. */
#define EVENTS_MAX 16u

static int channel_create(struct rbx_verbs_cq *cq, struct ibv_context *verbs)
{
	int flags;

	cq->channel = ibv_create_comp_channel(verbs);
	if (!cq->channel)
		return -errno;
	flags = fcntl(cq->channel->fd, F_GETFL);
	if (fcntl(cq->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0) {
		flags = errno;
		ibv_destroy_comp_channel(cq->channel);
		return -flags;
	}
	return 0;
}

static int queue_create(struct rbx_verbs_cq *cq,
			struct rbx_verbs_device *device, uint32_t depth_count,
			uint32_t vector)
{
	int err = channel_create(cq, device->verbs);

	if (err)
		return err;
	cq->ibv = ibv_create_cq(device->verbs, (int)depth_count, cq,
				cq->channel, (int)vector);
	if (!cq->ibv) {
		err = errno ? -errno : -ENOMEM;
		ibv_destroy_comp_channel(cq->channel);
		return err;
	}
	pthread_mutex_init(&cq->lookup_lock, NULL);
	cq->cq.device = &device->device;
	cq->cq.event_fd = cq->channel->fd;
	cq->cq.depth_count = (uint32_t)cq->ibv->cqe;
	return 0;
}

int rbx_verbs_create_cq_on(struct rbx_device *rbx_device, uint32_t depth_count,
			   uint32_t vector, struct rbx_cq **created, char *error)
{
	struct rbx_verbs_device *device = rbx_verbs_device(rbx_device);
	struct rbx_verbs_cq *cq;
	int err;

	if (!depth_count || depth_count > device->device.caps.max_cqe)
		return rbx_verbs_explain(error, -EINVAL,
			"a completion queue of %u entries is not possible: %s "
			"allows 1 to %u; ask for less", depth_count,
			device->verbs->device->name, device->device.caps.max_cqe);
	if (vector >= device->device.caps.completion_vectors)
		return rbx_verbs_explain(error, -EINVAL,
			"completion vector %u: %s has 0 to %u", vector,
			device->verbs->device->name,
			device->device.caps.completion_vectors - 1);
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return rbx_verbs_explain(error, -ENOMEM, "out of memory");
	err = queue_create(cq, device, depth_count, vector);
	if (err) {
		free(cq);
		return rbx_verbs_explain(error, err,
			"no completion queue of %u entries: %s; raise "
			"RLIMIT_MEMLOCK (`ulimit -l`) or RLIMIT_NOFILE "
			"(`ulimit -n`), or ask for less", depth_count,
			strerror(-err));
	}
	*created = &cq->cq;
	return 0;
}

int rbx_verbs_create_cq(struct rbx_device *device, uint32_t depth_count,
			struct rbx_cq **created, char *error)
{
	/* Each uses another processor, as far as there are vectors. */
	uint32_t vector = RBX_FETCH_ADD(&rbx_verbs_device(device)->cqs_count, 1) %
			  device->caps.completion_vectors;

	return rbx_verbs_create_cq_on(device, depth_count, vector, created, error);
}

void rbx_verbs_destroy_cq(struct rbx_cq *rbx_cq)
{
	struct rbx_verbs_cq *cq = rbx_verbs_cq(rbx_cq);

	rbx_verbs_consume_events(rbx_cq);
	ibv_ack_cq_events(cq->ibv, cq->unacked_count);
	ibv_destroy_cq(cq->ibv);
	ibv_destroy_comp_channel(cq->channel);
	pthread_mutex_destroy(&cq->lookup_lock);
	free(cq);
}

int rbx_verbs_arm(struct rbx_cq *rbx_cq)
{
	struct rbx_verbs_cq *cq = rbx_verbs_cq(rbx_cq);

	/* A poller that always finds something after arming never consumes an event. */
	if (cq->events_max == EVENTS_MAX)
		rbx_verbs_consume_events(rbx_cq);
	cq->events_max++;
	return -ibv_req_notify_cq(cq->ibv, 0);
}

void rbx_verbs_consume_events(struct rbx_cq *rbx_cq)
{
	struct rbx_verbs_cq *cq = rbx_verbs_cq(rbx_cq);
	struct ibv_cq *of;
	void *context;

	while (cq->events_max != 0) {
		if (ibv_get_cq_event(cq->channel, &of, &context)) {
			cq->events_max = 1; /* it may still be armed */
			break;
		}
		cq->events_max--;
		cq->unacked_count++;
	}
	if (cq->unacked_count >= ACK_BATCH_COUNT) {
		ibv_ack_cq_events(cq->ibv, cq->unacked_count);
		cq->unacked_count = 0;
	}
}
