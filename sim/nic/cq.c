/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cq.c - see cq.h. */
#include "sim/nic/cq.h"

#include <stdio.h>
#include <stdlib.h>

struct entry {
	struct rbx_wc wc;
	struct rbx_nic_qp *qp;
	uint32_t number;
	bool is_recv;
};

struct rbx_nic_cq {
	struct rbx_cq base;
	struct rbx_nic_device *device;
	struct rbx_nic_cq *next; /* of the device */
	struct entry *entries; /* a ring of depth_count */
	uint32_t first, count;
	bool armed;
	uint32_t unannounced_count; /* without an event since it was armed */
	struct rbx_sim_event interrupt;
};

static struct rbx_nic_cq *cq_of(struct rbx_cq *base)
{
	return RBX_CONTAINER_OF(base, struct rbx_nic_cq, base);
}

static struct entry *entry_at(struct rbx_nic_cq *cq, uint32_t index)
{
	uint32_t at = cq->first + index;

	return &cq->entries[at < cq->base.depth_count ?
				    at :
				    at - cq->base.depth_count];
}

static void interrupt(struct rbx_sim_event *event)
{
	struct rbx_nic_cq *cq = RBX_CONTAINER_OF(event, struct rbx_nic_cq, interrupt);

	cq->device->interrupts++;
	rbx_nic_host()->raise_event(cq->base.event_fd);
}

int rbx_nic_cq_create(struct rbx_device *base, uint32_t depth_count,
		      struct rbx_cq **out, char *error)
{
	struct rbx_nic_cq *cq = calloc(1, sizeof(*cq));

	if (cq)
		cq->entries = calloc(RBX_MAX(depth_count, 1u),
				     sizeof(*cq->entries));
	if (!cq || !cq->entries) {
		free(cq);
		if (error)
			snprintf(error, RBX_ERROR_TEXT_MAX,
				 "cannot allocate a completion queue of %u",
				 depth_count);
		return -ENOMEM;
	}
	cq->base.device = base;
	cq->base.depth_count = RBX_MAX(depth_count, 1u);
	cq->base.event_fd = rbx_nic_host()->open_event();
	cq->device = rbx_nic_device_of(base);
	cq->interrupt.run = interrupt;
	cq->next = cq->device->cqs;
	cq->device->cqs = cq;
	*out = &cq->base;
	return 0;
}

static void free_cq(struct rbx_nic_cq *cq)
{
	rbx_sim_cancel(&cq->interrupt);
	free(cq->entries);
	free(cq);
}

void rbx_nic_cq_destroy(struct rbx_cq *base)
{
	struct rbx_nic_cq *cq = cq_of(base);
	struct rbx_nic_cq **at = &cq->device->cqs;

	while (*at != cq)
		at = &(*at)->next;
	*at = cq->next;
	rbx_nic_host()->close_event(base->event_fd);
	free_cq(cq);
}

void rbx_nic_cqs_vanish(struct rbx_nic_device *device)
{
	while (device->cqs) {
		struct rbx_nic_cq *cq = device->cqs;

		device->cqs = cq->next;
		free_cq(cq);
	}
}

/* By DMA, behind the entry that caused it. */
static void announce(struct rbx_nic_cq *cq)
{
	const struct rbx_nic_params *params = cq->device->params;
	uint32_t wait_ns = params->moderation_ns;

	if (++cq->unannounced_count >= params->moderation_count)
		wait_ns = 0;
	if (cq->unannounced_count > 1 && wait_ns != 0)
		return;
	if (cq->unannounced_count > params->moderation_count)
		return;
	rbx_sim_after(&cq->interrupt, wait_ns + params->pcie_write_ns);
}

void rbx_nic_cq_add(struct rbx_cq *base, const struct rbx_wc *wc,
		    struct rbx_nic_qp *qp, uint32_t number, bool is_recv)
{
	struct rbx_nic_cq *cq = cq_of(base);

	/* The queue must be made long enough. */
	RBX_ASSERT(cq->count < base->depth_count);
	*entry_at(cq, cq->count++) = (struct entry){ *wc, qp, number, is_recv };
	if (cq->armed)
		announce(cq);
}

int rbx_nic_cq_poll(struct rbx_cq *base, struct rbx_wc *wcs, int max)
{
	struct rbx_nic_cq *cq = cq_of(base);
	const struct rbx_nic_params *params = cq->device->params;
	int count = 0;

	while (count < max && cq->count != 0) {
		const struct entry *entry = entry_at(cq, 0);

		wcs[count++] = entry->wc;
		if (entry->is_recv)
			entry->qp->recv_tail = entry->number + 1;
		else
			entry->qp->tail = entry->number + 1;
		cq->first = cq->first + 1 == base->depth_count ? 0 : cq->first + 1;
		cq->count--;
	}
	rbx_nic_host()->spend(count ? (uint64_t)count *
					      params->poll_completion_ns :
				      params->poll_empty_ns);
	return count;
}

int rbx_nic_cq_arm(struct rbx_cq *base)
{
	struct rbx_nic_cq *cq = cq_of(base);

	cq->armed = true;
	cq->unannounced_count = 0;
	rbx_nic_host()->spend(cq->device->params->arm_ns);
	return 0;
}

void rbx_nic_cq_consume(struct rbx_cq *base)
{
	cq_of(base)->armed = false;
	rbx_nic_host()->lower_event(base->event_fd);
}

void rbx_nic_cq_forget(struct rbx_cq *base, const struct rbx_nic_qp *qp)
{
	struct rbx_nic_cq *cq = cq_of(base);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < cq->count; i++) {
		struct entry entry = *entry_at(cq, i);

		if (entry.qp != qp)
			*entry_at(cq, kept++) = entry;
	}
	cq->count = kept;
}
