/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stray.c - a write whose sender has given up while its packet is on the wire.
 *
 * A queue pair that breaks forgets what it has sent. But a packet that has left is carried
 * out all the same, some time later, if the other end's queue pair still exists and its key
 * is valid. A program that sends the same bytes again over a new connection must have ended
 * the old one first. It happens if the site stray_write is on.
 */
#include "sim/nic/qp.h"

#include <stdlib.h>

#include "sim/sites.h"
#include "sim/trace.h"

#define STRAY_NS_MAX 500000u

struct stray {
	struct rbx_sim_event event;
	struct rbx_nic_device *device; /* the responder's; lives to the end */
	uint32_t qp_number; /* of the responder's end */
	uint32_t rkey;
	uint64_t remote_addr;
	uint32_t length_bytes;
	struct rbx_nic_payload *payload;
};

static struct rbx_nic_qp *find_qp(const struct stray *stray)
{
	struct rbx_nic_qp *qp = stray->device->qps;

	while (qp && qp->number != stray->qp_number)
		qp = qp->next;
	return qp;
}

static void arrive(struct rbx_sim_event *event)
{
	struct stray *stray = RBX_CONTAINER_OF(event, struct stray, event);
	struct rbx_nic_qp *qp = find_qp(stray);

	if (qp && !qp->is_broken &&
	    rbx_nic_regions_find(&stray->device->regions, qp->domain,
				 stray->rkey, stray->remote_addr,
				 stray->length_bytes, RBX_REMOTE_WRITE)) {
		RBX_SIM_TRACE(stray->device->node, "stray", "qp", qp->number,
			      "bytes", stray->length_bytes);
		memcpy((void *)(uintptr_t)stray->remote_addr,
		       stray->payload->bytes, stray->length_bytes);
	}
	rbx_nic_payload_put(stray->payload);
	free(stray);
}

void rbx_nic_stray(struct rbx_nic_op *op)
{
	struct rbx_nic_qp *peer = op->qp->peer;
	struct stray *stray;

	if (!peer || op->opcode != RBX_OP_WRITE || !op->payload ||
	    !rbx_sim_site(RBX_SIM_SITE_stray_write))
		return;
	stray = calloc(1, sizeof(*stray));
	if (!stray)
		return;
	*stray = (struct stray){
		.event = { .run = arrive },
		.device = peer->device,
		.qp_number = peer->number,
		.rkey = op->rkey,
		.remote_addr = op->remote_addr,
		.length_bytes = op->length_bytes,
		.payload = op->payload,
	};
	op->payload = NULL;
	rbx_sim_after(&stray->event,
		      rbx_sim_site_draw(RBX_SIM_SITE_stray_write, 0,
					STRAY_NS_MAX));
}
