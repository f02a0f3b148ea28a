/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * srq.c - shared receive queues.
 *
 * Messages of many queue pairs take receives in one order and complete them in others. So a
 * receive is not identified by its number but by its place, which is free again when its
 * completion has been polled. The place keeps the scatter list: if a queue pair was destroyed
 * before a completion was polled, that completion puts its receive back into the queue.
 *
 * Limit: if a device drops such completions itself, the place stays in use until the queue is
 * destroyed. The same happens on Soft-RoCE if a part of a message has come when its
 * connection ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/verbs/explain.h"
#include "fabric/verbs/verbs.h"

#define POST_BATCH_COUNT 16

#define NUMBER_SHIFT 32 /* of the queue, in an id; the place is below it */
#define NUMBER_MASK (RBX_VERBS_WR_SHARED - 1)

static struct rbx_verbs_srq *srq_of(struct rbx_srq *srq)
{
	return (struct rbx_verbs_srq *)srq;
}

/* ---- Making one ----------------------------------------------------------------- */

static void srq_free(struct rbx_verbs_srq *srq)
{
	pthread_mutex_destroy(&srq->lock);
	free(srq->receives);
	free(srq->sges);
	free(srq);
}

static struct rbx_verbs_srq *srq_allocate(const struct rbx_srq_init *init)
{
	struct rbx_verbs_srq *srq = calloc(1, sizeof(*srq));
	uint32_t i;

	if (!srq)
		return NULL;
	pthread_mutex_init(&srq->lock, NULL);
	srq->max_sge = init->max_sge ? init->max_sge : 1;
	srq->receives = calloc(init->depth_count, sizeof(*srq->receives));
	srq->sges = calloc((size_t)init->depth_count * srq->max_sge,
			   sizeof(*srq->sges));
	if (!srq->receives || !srq->sges) {
		srq_free(srq);
		return NULL;
	}
	for (i = 0; i < init->depth_count; i++)
		srq->receives[i].next_free =
			i + 1 < init->depth_count ? i + 1 : RBX_VERBS_SRQ_NONE;
	return srq;
}

static int init_check(const struct rbx_verbs_device *device,
		      const struct rbx_srq_init *init, char *error)
{
	const struct rbx_device_caps *caps = &device->device.caps;

	if (!caps->max_srq_wr)
		return rbx_verbs_explain(error, -EOPNOTSUPP,
			"%s has no shared receive queues", caps->name);
	if (!init->cq || !init->depth_count ||
	    init->depth_count > caps->max_srq_wr ||
	    init->max_sge > caps->max_srq_sge)
		return rbx_verbs_explain(error, -EINVAL,
			"%u receives of %u entries are not possible: %s allows "
			"%u of %u in a shared queue", init->depth_count,
			init->max_sge, caps->name, caps->max_srq_wr,
			caps->max_srq_sge);
	return 0;
}

int rbx_verbs_create_srq(struct rbx_device *rbx_device,
			 const struct rbx_srq_init *init, struct rbx_srq **out,
			 char *error)
{
	struct rbx_verbs_device *device = rbx_verbs_device(rbx_device);
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = init->depth_count,
			  .max_sge = init->max_sge ? init->max_sge : 1 },
	};
	struct rbx_verbs_srq *srq;
	int err = init_check(device, init, error);

	if (err)
		return err;
	srq = srq_allocate(init);
	if (!srq)
		return rbx_verbs_explain(error, -ENOMEM, "out of memory");
	srq->ibv = ibv_create_srq(rbx_verbs_pd(device, init->domain), &attr);
	if (!srq->ibv) {
		err = errno ? -errno : -EIO;
		srq_free(srq);
		return rbx_verbs_explain(error, err,
			"no shared queue of %u receives: %s; ask for less, or "
			"raise RLIMIT_MEMLOCK (`ulimit -l`)",
			init->depth_count, strerror(-err));
	}
	srq->srq.device = rbx_device;
	srq->srq.user = init->user;
	srq->srq.depth_count = init->depth_count;
	srq->domain = init->domain;
	srq->cq = init->cq;
	srq->low.event.kind = RBX_DEVICE_SRQ_LOW;
	srq->low.event.srq = &srq->srq;
	pthread_mutex_lock(&device->lock);
	srq->number = ++device->srqs_count & (NUMBER_MASK >> NUMBER_SHIFT);
	LIST_INSERT_HEAD(&device->srqs, srq, entry);
	pthread_mutex_unlock(&device->lock);
	*out = &srq->srq;
	return 0;
}

void rbx_verbs_destroy_srq(struct rbx_srq *rbx_srq)
{
	struct rbx_verbs_device *device = rbx_verbs_device(rbx_srq->device);
	struct rbx_verbs_srq *srq = srq_of(rbx_srq);

	pthread_mutex_lock(&device->lock);
	LIST_REMOVE(srq, entry);
	pthread_mutex_unlock(&device->lock);
	ibv_destroy_srq(srq->ibv);
	rbx_device_events_forget(&device->events, &srq->low);
	srq_free(srq);
}

/* ---- Receives -------------------------------------------------------------------*/

static uint64_t id_of(const struct rbx_verbs_srq *srq, uint32_t place)
{
	return RBX_VERBS_WR_RECV | RBX_VERBS_WR_SHARED |
	       (uint64_t)srq->number << NUMBER_SHIFT | place;
}

static struct ibv_recv_wr wr_of(const struct rbx_verbs_srq *srq, uint32_t place)
{
	return (struct ibv_recv_wr){
		.wr_id = id_of(srq, place),
		.sg_list = &srq->sges[(size_t)place * srq->max_sge],
		.num_sge = (int)srq->receives[place].sge_count,
	};
}

static void place_free_locked(struct rbx_verbs_srq *srq, uint32_t place)
{
	srq->receives[place].next_free = srq->free_first;
	srq->free_first = place;
}

/* Returns 0 and a place that is filled in. */
static int place_take_locked(struct rbx_verbs_srq *srq,
			     const struct rbx_recv_wr *wr, uint32_t *place)
{
	int sge_count = rbx_verbs_recv_sge_count(wr, srq->max_sge);
	struct rbx_verbs_shared_receive *receive;

	if (sge_count < 0)
		return sge_count;
	if (srq->free_first == RBX_VERBS_SRQ_NONE)
		return -ENOMEM;
	*place = srq->free_first;
	receive = &srq->receives[*place];
	srq->free_first = receive->next_free;
	receive->wr_id = wr->wr_id;
	receive->sge_count = (uint32_t)sge_count;
	if (sge_count)
		memcpy(&srq->sges[(size_t)*place * srq->max_sge], wr->sges,
		       (size_t)sge_count * sizeof(*srq->sges));
	return 0;
}

/* One call to the device; *rest is where the chain goes on. */
static int post_batch_locked(struct rbx_verbs_srq *srq, struct rbx_recv_wr **rest)
{
	struct ibv_recv_wr wrs[POST_BATCH_COUNT];
	uint32_t places[POST_BATCH_COUNT];
	struct rbx_recv_wr *wr = *rest;
	struct ibv_recv_wr *bad;
	uint32_t count = 0, i;
	int err = 0, device_err = 0;

	for (; wr && count < POST_BATCH_COUNT; wr = wr->next, count++) {
		err = place_take_locked(srq, wr, &places[count]);
		if (err)
			break;
		wrs[count] = wr_of(srq, places[count]);
		if (count)
			wrs[count - 1].next = &wrs[count];
	}
	if (count)
		device_err = ibv_post_srq_recv(srq->ibv, wrs, &bad);
	if (device_err) {
		err = -device_err;
		for (i = (uint32_t)(bad - wrs); i < count; i++)
			place_free_locked(srq, places[i]);
		count = (uint32_t)(bad - wrs);
	}
	for (i = 0; *rest && i < count; i++)
		*rest = (*rest)->next;
	return err;
}

int rbx_verbs_post_srq_recv(struct rbx_srq *rbx_srq, struct rbx_recv_wr *first,
			    struct rbx_recv_wr **bad)
{
	struct rbx_verbs_srq *srq = srq_of(rbx_srq);
	struct rbx_recv_wr *rest = first;
	int err = 0;

	pthread_mutex_lock(&srq->lock);
	while (rest && !err)
		err = post_batch_locked(srq, &rest);
	pthread_mutex_unlock(&srq->lock);
	if (err && bad)
		*bad = rest;
	return err;
}

uint64_t rbx_verbs_srq_complete(struct rbx_verbs_srq *srq, uint64_t id)
{
	uint64_t wr_id;

	pthread_mutex_lock(&srq->lock);
	wr_id = srq->receives[(uint32_t)id].wr_id;
	place_free_locked(srq, (uint32_t)id);
	pthread_mutex_unlock(&srq->lock);
	return wr_id;
}

static void receive_return(struct rbx_verbs_srq *srq, uint32_t place)
{
	struct ibv_recv_wr wr, *bad;

	pthread_mutex_lock(&srq->lock);
	wr = wr_of(srq, place);
	/* It had room for it before; a failed device takes nothing. */
	(void)ibv_post_srq_recv(srq->ibv, &wr, &bad);
	pthread_mutex_unlock(&srq->lock);
}

void rbx_verbs_srq_return(struct rbx_verbs_device *device, uint64_t id)
{
	const uint32_t number = (uint32_t)((id & NUMBER_MASK) >> NUMBER_SHIFT);
	struct rbx_verbs_srq *srq;

	pthread_mutex_lock(&device->lock);
	LIST_FOREACH(srq, &device->srqs, entry)
		if (srq->number == number)
			receive_return(srq, (uint32_t)id);
	pthread_mutex_unlock(&device->lock);
}

void rbx_verbs_set_srq_limit(struct rbx_srq *srq, uint32_t limit_count)
{
	struct ibv_srq_attr attr = { .srq_limit = limit_count };

	(void)ibv_modify_srq(srq_of(srq)->ibv, &attr, IBV_SRQ_LIMIT);
}
