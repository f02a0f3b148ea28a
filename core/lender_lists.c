/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lender_lists.c - the lists in which slabs and their clients stand (lender_table.h), and
 * which slabs a client is asked to give back.
 */
#include "core/lender.h"

#include "core/lender_table.h"

#define NONE RBX_LENDER_NONE

void rbx_lender_queue_put(struct rbx_lender *l, struct rbx_lender_list *queue,
			  uint32_t index)
{
	l->slabs[index].next = NONE;
	if (queue->first == NONE)
		queue->first = index;
	else
		l->slabs[queue->last].next = index;
	queue->last = index;
}

/* The list of its client that the slab is in, or belongs in. */
static struct rbx_lender_list *list_of(struct rbx_lender *l,
				       const struct rbx_lender_slab *slab)
{
	struct rbx_lender_client *client = &l->clients[slab->client];

	if (slab->state != SLAB_ASKED)
		return &client->slabs;
	return slab->revoke_ns == RBX_LENDER_NEVER_NS ? &client->asked : &client->due;
}

void rbx_lender_slab_join(struct rbx_lender *l, uint32_t index)
{
	struct rbx_lender_list *list = list_of(l, &l->slabs[index]);

	l->slabs[index].prev = list->first == NONE ? NONE : list->last;
	rbx_lender_queue_put(l, list, index);
}

void rbx_lender_slab_part(struct rbx_lender *l, uint32_t index)
{
	const struct rbx_lender_slab *slab = &l->slabs[index];
	struct rbx_lender_list *list = list_of(l, slab);

	if (slab->prev == NONE)
		list->first = slab->next;
	else
		l->slabs[slab->prev].next = slab->next;
	if (slab->next == NONE)
		list->last = slab->prev;
	else
		l->slabs[slab->next].prev = slab->prev;
}

static void slab_join_front(struct rbx_lender *l, uint32_t index)
{
	struct rbx_lender_slab *slab = &l->slabs[index];
	struct rbx_lender_list *list = list_of(l, slab);

	if (list->first == NONE) {
		rbx_lender_slab_join(l, index);
		return;
	}
	slab->prev = NONE;
	slab->next = list->first;
	l->slabs[list->first].prev = index;
	list->first = index;
}

/* ---- What is asked for -----------------------------------------------------*/

static void asking_join(struct rbx_lender *l, uint32_t index)
{
	struct rbx_lender_client *client = &l->clients[index];

	client->asking_next = NONE;
	client->asking_prev = l->asking.first == NONE ? NONE : l->asking.last;
	if (client->asking_prev == NONE)
		l->asking.first = index;
	else
		l->clients[client->asking_prev].asking_next = index;
	l->asking.last = index;
}

static void asking_part(struct rbx_lender *l, uint32_t index)
{
	const struct rbx_lender_client *client = &l->clients[index];

	if (client->asking_prev == NONE)
		l->asking.first = client->asking_next;
	else
		l->clients[client->asking_prev].asking_next =
			client->asking_next;
	if (client->asking_next == NONE)
		l->asking.last = client->asking_prev;
	else
		l->clients[client->asking_next].asking_prev =
			client->asking_prev;
}

void rbx_lender_asking_rotate(struct rbx_lender *l, uint32_t index)
{
	asking_part(l, index);
	asking_join(l, index);
}

void rbx_lender_slab_ask(struct rbx_lender *l, uint32_t index, uint64_t now_ns,
			 uint64_t revoke_ns)
{
	struct rbx_lender_slab *slab = &l->slabs[index];
	struct rbx_lender_client *client = &l->clients[slab->client];

	RBX_ASSERT(slab->state == SLAB_LENT);
	rbx_lender_slab_part(l, index);
	slab->state = SLAB_ASKED;
	slab->remind_ns = now_ns;
	slab->revoke_ns = revoke_ns;
	rbx_lender_slab_join(l, index);
	l->counts.slabs_asked++;
	l->counts.slabs_due += revoke_ns != RBX_LENDER_NEVER_NS;
	if (client->asked_count++)
		return;
	asking_join(l, slab->client);
	l->asking_count++;
}

void rbx_lender_asked_move(struct rbx_lender *l, uint32_t index, bool to_front)
{
	RBX_ASSERT(l->slabs[index].state == SLAB_ASKED);
	rbx_lender_slab_part(l, index);
	if (to_front)
		slab_join_front(l, index);
	else
		rbx_lender_slab_join(l, index);
}

void rbx_lender_slab_unask(struct rbx_lender *l, uint32_t index)
{
	const struct rbx_lender_slab *slab = &l->slabs[index];

	l->counts.slabs_asked--;
	l->counts.slabs_due -= slab->revoke_ns != RBX_LENDER_NEVER_NS;
	if (--l->clients[slab->client].asked_count)
		return;
	asking_part(l, slab->client);
	l->asking_count--;
	l->asking_left = RBX_MIN(l->asking_left, l->asking_count);
}

void rbx_lender_slab_set_due(struct rbx_lender *l, uint32_t index, uint64_t now_ns,
			     uint64_t revoke_ns)
{
	RBX_ASSERT(l->slabs[index].state == SLAB_ASKED);
	rbx_lender_slab_part(l, index);
	l->slabs[index].remind_ns = now_ns;
	l->slabs[index].revoke_ns = revoke_ns;
	l->counts.slabs_due++;
	rbx_lender_slab_join(l, index);
}

void rbx_lender_slab_withdraw(struct rbx_lender *l, uint32_t index)
{
	RBX_ASSERT(l->slabs[index].state == SLAB_ASKED);
	rbx_lender_slab_part(l, index);
	rbx_lender_slab_unask(l, index);
	l->slabs[index].state = SLAB_LENT;
	slab_join_front(l, index);
}
