/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keys.c - registered memory, found by key.
 *
 * A key is a place in a table and is never used twice, so a stale key is always recognized.
 * If one half of a work request has moved when its memory is deregistered, the other half
 * moves before that: afterwards nothing may.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/fail.h"
#include "sim/hands.h"
#include "sim/plain/plain.h"
#include "sim/trace.h"

#define KEYS_MAX (1u << 20)
#define KEY_FIRST 0x1000u

static struct plain_mr *keys[KEYS_MAX];
static uint32_t keys_used;

void plain_keys_begin(void)
{
	keys_used = 0;
}

static int register_one(struct plain_device *device,
			const struct rbx_mr_init *init, struct rbx_mr **out)
{
	struct plain_mr *mr;

	if (keys_used == KEYS_MAX)
		rbx_sim_fail("limits", "more than %u registrations", KEYS_MAX);
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	mr->base.device = &device->base;
	mr->base.addr = init->addr;
	mr->base.length_bytes = init->length_bytes;
	mr->base.lkey = mr->base.rkey = KEY_FIRST + keys_used;
	mr->domain = init->domain;
	mr->rights = init->rights;
	mr->node = device->node;
	keys[keys_used++] = mr;
	rbx_sim_hands_give(device->node, &mr->base, init->domain, init->rights);
	RBX_SIM_TRACE(device->node, "register", "key", mr->base.rkey, "bytes",
		      init->length_bytes);
	*out = &mr->base;
	return 0;
}

int plain_register(struct rbx_device *device, const struct rbx_mr_init *inits,
		   size_t count, struct rbx_mr **mrs, char *error)
{
	int err;

	(void)error;
	for (size_t i = 0; i < count; i++) {
		err = register_one((struct plain_device *)device, &inits[i],
				   &mrs[i]);
		if (err) {
			plain_deregister(device, mrs, i);
			return err;
		}
	}
	return 0;
}

/* Work requests with a half in this memory move it now. */
static void halves_move(const struct plain_mr *mr)
{
	for (struct plain_qp *qp = plain_qps; qp && mr->halves_count;
	     qp = qp->next) {
		for (uint32_t at = qp->completed_count;
		     at != qp->arrived_count; at++) {
			struct plain_work *work = plain_work(qp, at);

			if (work->is_half && work->rkey == mr->base.rkey)
				plain_second_half(qp, at);
		}
	}
	RBX_ASSERT(mr->halves_count == 0);
}

void plain_deregister(struct rbx_device *device, struct rbx_mr **mrs,
		      size_t count)
{
	(void)device;
	for (size_t i = 0; i < count; i++) {
		struct plain_mr *mr = (struct plain_mr *)mrs[i];

		halves_move(mr);
		keys[mr->base.rkey - KEY_FIRST] = NULL;
		rbx_sim_hands_take(mrs[i]);
		RBX_SIM_TRACE(mr->node, "deregister", "key", mr->base.rkey,
			      "bytes", mr->base.length_bytes);
		free(mr);
	}
}

struct plain_mr *plain_key(uint32_t key)
{
	return key >= KEY_FIRST && key - KEY_FIRST < keys_used ?
		       keys[key - KEY_FIRST] :
		       NULL;
}

static bool covers(const struct plain_mr *mr, uint64_t addr, uint64_t length)
{
	uint64_t first = (uintptr_t)mr->base.addr;

	return addr >= first && length <= mr->base.length_bytes &&
	       addr - first <= mr->base.length_bytes - length;
}

static struct plain_mr whole_memory; /* of any node, for RBX_PLAIN_ANY_LKEY */

struct plain_mr *plain_local(const struct plain_qp *qp,
			     const struct rbx_sge *sge, uint32_t rights)
{
	struct plain_mr *mr = plain_key(sge->lkey);

	if (qp->base.device->caps.has_any_lkey && sge->lkey == RBX_PLAIN_ANY_LKEY)
		return &whole_memory;
	if (!mr || mr->is_ended || mr->node != qp->node ||
	    (mr->rights & rights) != rights ||
	    !covers(mr, sge->addr, sge->length_bytes))
		return NULL;
	return mr;
}

struct plain_mr *plain_remote(const struct plain_qp *target, uint32_t rkey,
			      uint64_t addr, uint32_t length_bytes,
			      uint32_t rights)
{
	struct plain_mr *mr = plain_key(rkey);

	if (!mr || mr->is_ended || mr->node != target->node ||
	    mr->domain != target->domain || !(mr->rights & rights) ||
	    !covers(mr, addr, length_bytes))
		return NULL;
	return mr;
}

bool plain_key_end(const struct plain_qp *target, uint32_t key)
{
	struct plain_mr *mr = plain_key(key);

	if (!mr || mr->is_ended || mr->node != target->node ||
	    mr->domain != target->domain ||
	    !(mr->rights & RBX_REMOTE_INVALIDATE))
		return false;
	mr->is_ended = true;
	return true;
}

void plain_keys_stop(uint32_t node)
{
	for (uint32_t i = 0; i < keys_used; i++) {
		if (!keys[i] || keys[i]->node != node)
			continue;
		free(keys[i]);
		keys[i] = NULL;
	}
}
