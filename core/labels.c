/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * labels.c - the labels of a named volume, by which its next client finds its slabs, see upkeep.h.
 *
 * What was lent for first writes, or was rebuilt, is labelled as complete by its server before it
 * counts. The label of what leaves is taken back before that misses a write (slab_leaving.c). A
 * server that could not be asked is asked again, until it has answered or is known to be dead.
 */
#include "core/upkeep.h"

#include "core/extents.h"
#include "core/slab_spare.h"
#include "core/status.h"

void rbx_labels_ask(struct rbx_upkeep *upkeep, const struct rbx_asked *lent,
		    const struct rbx_loan *loan)
{
	struct rbx_asked *asked =
		rbx_asks_send(upkeep, lent->server, RBX_CALL_LABEL, loan, 0);

	asked->borrowing = lent->borrowing;
	asked->slab = lent->slab;
	asked->slot = lent->slot;
}

/* Whether a server that could not be asked may answer yet. */
static bool may_answer(struct rbx_upkeep *upkeep, uint32_t server, int err)
{
	return (rbx_status_is_away(err) || err == -EHOSTUNREACH) &&
	       !RBX_LOAD_RELAXED(&upkeep->is_closing) &&
	       !rbx_upkeep_server_is_down(upkeep, server) &&
	       !rbx_held_has_failed(&upkeep->flow->held, server);
}

/*
 * Of a slab that was lent for first writes. If there is no answer, the server may have it or not,
 * and the next client could find it there: it is of use to nobody. But not if the record says
 * that the server is out (held.h).
 */
static void first_over(struct rbx_upkeep *upkeep, const struct rbx_asked *asked,
		       int err)
{
	bool is_down = rbx_upkeep_server_is_down(upkeep, asked->server);

	if (!err && is_down)
		err = -ENOTCONN;
	if (err && err != -ESTALE && err != -EPERM &&
	    !(is_down && upkeep->flow->map->shape.is_guarded)) {
		asked->borrowing->is_uncertain = true;
		asked->borrowing->wanted_count = 0;
	}
	rbx_loans_borrowed(upkeep, asked, err, &asked->loan);
}

/* Of a rebuilt replica. If the server is dead, the replica is lost soon. */
static void rebuilt_over(struct rbx_upkeep *upkeep, const struct rbx_asked *asked,
			 int err)
{
	rbx_slab_lock(asked->slab);
	if (err == -ESTALE || err == -EPERM)
		rbx_slab_revoked(asked->slab, asked->server, &asked->loan);
	else if (!err)
		rbx_slab_labelled(asked->slab, asked->server, &asked->loan);
	if (!err)
		rbx_extents_joined(asked->slab);
	(void)rbx_attention_note(&upkeep->flow->map->attention, asked->slab);
	rbx_slab_unlock(asked->slab);
}

/* Of a replica that leaves. If the server is dead, the replica is lost soon. */
static void unlabel_over(struct rbx_upkeep *upkeep, const struct rbx_asked *asked, int err)
{
	rbx_slab_lock(asked->slab);
	if (err == -ESTALE || err == -EPERM)
		rbx_slab_revoked(asked->slab, asked->server, &asked->loan);
	else if (!err)
		rbx_slab_unlabel_done(asked->slab, asked->server, &asked->loan);
	(void)rbx_attention_note(&upkeep->flow->map->attention, asked->slab);
	rbx_slab_unlock(asked->slab);
}

void rbx_labels_over(struct rbx_upkeep *upkeep, const struct rbx_asked *asked, int err)
{
	if (!asked->slab)
		return;
	if (may_answer(upkeep, asked->server, err))
		rbx_asks_again(upkeep, asked);
	else if (asked->kind == RBX_CALL_UNLABEL)
		unlabel_over(upkeep, asked, err);
	else if (asked->borrowing)
		first_over(upkeep, asked, err);
	else
		rebuilt_over(upkeep, asked, err);
}

bool rbx_labels_task(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
		     enum rbx_slab_task task)
{
	bool is_label = task == RBX_TASK_LABEL;
	const struct rbx_replica *replica;
	struct rbx_loan loan;
	uint32_t server = 0;
	bool may_ask = false;
	int slot;

	rbx_slab_lock(slab);
	slot = is_label ? rbx_slab_unlabelled(slab) : rbx_slab_superfluous(slab);
	if (slot >= 0) {
		replica = rbx_slab_replica(slab, (uint32_t)slot);
		server = rbx_replica_server(replica);
		loan = rbx_replica_loan(replica);
		may_ask = upkeep->asked_count < RBX_ASKS_MAX &&
			  !rbx_server_set_has(&upkeep->busy, server);
	}
	if (may_ask && is_label)
		rbx_slab_label_asked(slab, (uint32_t)slot);
	else if (may_ask)
		rbx_slab_unlabel_asked(slab, (uint32_t)slot);
	rbx_slab_unlock(slab);
	if (may_ask)
		rbx_asks_send(upkeep, server, is_label ? RBX_CALL_LABEL : RBX_CALL_UNLABEL, &loan,
			      0)
			->slab = slab;
	return may_ask || slot < 0;
}

/* ---- Opening a named volume ------------------------------------------------------------ */

int rbx_upkeep_adopt(struct rbx_upkeep *upkeep, uint32_t server, uint64_t label,
		     const struct rbx_loan *loan)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	uint64_t slab_bytes = (uint64_t)1 << map->shape.slab_shift;
	uint32_t slot, number, twins[RBX_TWINS_MAX];
	struct rbx_server_set others = { .words = { 0 } };
	struct rbx_slab *slab;

	if (!label || label > map->slab_count || !rbx_loan_fits(loan) ||
	    loan->remote_addr > UINT64_MAX - slab_bytes)
		return -EINVAL;
	slab = rbx_slab_at(&map->shape, (uint32_t)(label - 1));
	if (rbx_slab_has_server(slab, server) ||
	    rbx_loan_index_twins(&map->loans, server, loan, twins, RBX_TWINS_MAX))
		return -EEXIST;
	/* Of one replica there are never two, but one of several may have been about to leave. */
	if (rbx_slab_servers(slab, &others) == map->shape.replicas)
		return map->shape.is_guarded ? -ENOSPC : -EEXIST;
	rbx_slab_lock(slab);
	slot = rbx_slab_borrow(slab, server);
	slab->blank = false;
	rbx_slab_lent(slab, slot, loan, RBX_REPLICA_LIVE);
	number = rbx_replica_number(slab, slot);
	rbx_slab_unlock(slab);
	rbx_loan_index_add(&map->loans, number);
	upkeep->servers[server].replicas_count++;
	rbx_attention_relist(&map->attention, slab, RBX_PARK_NOT);
	return 0;
}

uint32_t rbx_upkeep_fewest_copies(const struct rbx_upkeep *upkeep)
{
	const struct rbx_volume_map *map = upkeep->flow->map;
	uint32_t i, count, fewest = map->shape.replicas;

	for (i = 0; i < map->slab_count; i++) {
		struct rbx_server_set servers = { .words = { 0 } };
		struct rbx_slab *slab = rbx_slab_at(&map->shape, i);

		rbx_slab_lock(slab);
		count = rbx_slab_servers(slab, &servers);
		rbx_slab_unlock(slab);
		if (count)
			fewest = RBX_MIN(fewest, count);
	}
	return fewest;
}
