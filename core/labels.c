/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * labels.c - the labels of a named volume, by which its next client finds its slabs; see labels.h.
 *
 * What was lent for first writes, or was rebuilt, is labelled as complete by its server before it
 * counts. The label of what leaves is taken back before that misses a write (slab_leaving.c). A
 * server that could not be asked is asked again, until it has answered or is known to be dead.
 *
 * A server that has FAILED (held.h) is asked for no label back: it may never answer. So what it has
 * stays there, and nothing is copied only to move it away.
 */
#include "core/labels.h"

#include "core/asks.h"
#include "core/extents.h"
#include "core/loans.h"
#include "core/slab_rebuild.h"
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

/* Whether nobody knows if a server has done what it was asked for. */
static bool is_unanswered(int err)
{
	return rbx_status_is_away(err) || err == -EHOSTUNREACH;
}

/* Whether a server that could not be asked may answer yet. */
static bool may_answer(struct rbx_upkeep *upkeep, uint32_t server, int err)
{
	return is_unanswered(err) &&
	       !RBX_LOAD_RELAXED(&upkeep->is_closing) &&
	       !rbx_upkeep_server_is_down(upkeep, server) &&
	       !rbx_held_has_failed(&upkeep->flow->held, server);
}

/*
 * Of a slab that was lent for first writes. If there is no answer, the server may have it or not,
 * and the next client could find it there: it is of no use as it is. But not if the record says
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
		asked->borrowing->is_hopeless |=
			!upkeep->flow->map->shape.is_guarded ||
			!rbx_loans_owe_label(upkeep, asked->slab, asked->server, &asked->loan);
	}
	rbx_loans_borrowed(upkeep, asked, err, &asked->loan);
}

/* Whether the server refuses, or has FAILED. A volume that is being closed asks no more. */
static bool is_in_vain(struct rbx_upkeep *upkeep, uint32_t server, int err)
{
	return err && err != -ESTALE && err != -EPERM &&
	       !RBX_LOAD_RELAXED(&upkeep->is_closing) &&
	       !rbx_upkeep_server_is_down(upkeep, server);
}

/* Of a rebuilt replica. If the server is dead, the replica is lost soon; if it refuses, when it has
 * been put OUT. Until then it may have the label, and gets every write. */
static void rebuilt_over(struct rbx_upkeep *upkeep, const struct rbx_asked *asked,
			 int err)
{
	if (is_in_vain(upkeep, asked->server, err))
		rbx_held_suspect(&upkeep->flow->held, asked->server);
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

/* Of a replica that leaves. If the server is dead, the replica is lost soon. If it has FAILED, it
 * tells when it comes again. */
static void unlabel_over(struct rbx_upkeep *upkeep, const struct rbx_asked *asked, int err)
{
	bool in_vain = is_in_vain(upkeep, asked->server, err);

	/* Before its replica counts as a copy again. One that was judged is no suspect any more. */
	if (in_vain)
		rbx_held_suspect(&upkeep->flow->held, asked->server);
	rbx_slab_lock(asked->slab);
	if (err == -ESTALE || err == -EPERM)
		rbx_slab_revoked(asked->slab, asked->server, &asked->loan);
	else if (!err)
		rbx_slab_unlabel_done(asked->slab, asked->server, &asked->loan);
	else if (in_vain && !is_unanswered(err))
		rbx_slab_unlabel_failed(asked->slab, asked->server, &asked->loan);
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

bool rbx_labels_keep(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	uint32_t slot, count;

	rbx_slab_lock(slab);
	count = rbx_slab_count(slab, RBX_REPLICA_LIVE);
	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		count += rbx_slab_state(slab, slot) == RBX_REPLICA_LEAVING &&
			 rbx_held_has_failed(&upkeep->flow->held,
					     rbx_replica_server(rbx_slab_replica(slab, slot)));
	rbx_slab_unlock(slab);
	return count >= rbx_slab_shape(slab)->replicas;
}

/*
 * Whether a label may be taken back: not if a server of the slab has FAILED or is about to be put
 * OUT. The record for that may be under way, made with a look at the label that would go. A server
 * that becomes a suspect later is judged with another look, which needs the lock of the slab.
 */
static bool may_unlabel(struct rbx_upkeep *upkeep, const struct rbx_slab *slab, uint32_t server)
{
	struct rbx_server_set suspects, gone, have = { .words = { 0 } };
	uint32_t i;

	if (rbx_held_has_failed(&upkeep->flow->held, server))
		return false;
	(void)rbx_held_suspects(&upkeep->flow->held, &suspects, &gone);
	(void)rbx_slab_servers(slab, &have);
	for (i = 0; i < RBX_SERVER_SET_WORDS; i++)
		if (have.words[i] & gone.words[i])
			return false;
	return true;
}

int rbx_labels_task(struct rbx_upkeep *upkeep, struct rbx_slab *slab, enum rbx_slab_task task)
{
	bool is_label = task == RBX_TASK_LABEL;
	const struct rbx_replica *replica;
	struct rbx_loan loan;
	uint32_t server = 0;
	int slot, err = 0;
	bool may_ask;

	rbx_slab_lock(slab);
	slot = is_label ? rbx_slab_unlabelled(slab) : rbx_slab_superfluous(slab);
	if (slot >= 0) {
		replica = rbx_slab_replica(slab, (uint32_t)slot);
		server = rbx_replica_server(replica);
		loan = rbx_replica_loan(replica);
		if (!is_label && !may_unlabel(upkeep, slab, server))
			err = -EBUSY;
		else if (upkeep->asked_count == RBX_ASKS_MAX ||
			 rbx_server_set_has(&upkeep->busy, server))
			err = -EAGAIN;
	}
	may_ask = slot >= 0 && !err;
	if (may_ask && is_label)
		rbx_slab_label_asked(slab, (uint32_t)slot);
	else if (may_ask)
		rbx_slab_unlabel_asked(slab, (uint32_t)slot);
	rbx_slab_unlock(slab);
	if (may_ask)
		rbx_asks_send(upkeep, server, is_label ? RBX_CALL_LABEL : RBX_CALL_UNLABEL, &loan,
			      0)
			->slab = slab;
	return err;
}

/* ---- Opening a named volume ------------------------------------------------------------ */

/*
 * Whether a slab that is found at a server is taken, in its lock. Of one replica there are never
 * two, but one of several may have been about to leave. That is one at a time: a second one too
 * many was left by another writer.
 */
static int adopt_check(struct rbx_slab *slab, uint32_t server)
{
	const struct rbx_slab_shape *shape = rbx_slab_shape(slab);
	struct rbx_server_set others = { .words = { 0 } };

	if (rbx_slab_has_server(slab, server))
		return -EEXIST;
	if (rbx_slab_servers(slab, &others) < shape->replicas)
		return 0;
	if (!shape->is_guarded || slab->had_surplus)
		return -EEXIST;
	slab->had_surplus = true;
	return -ENOSPC;
}

/* What a server says that it has: 0; -EINVAL, -EEXIST: it cannot be. */
static int loan_check(struct rbx_volume_map *map, uint32_t server, const struct rbx_loan *loan)
{
	uint64_t slab_bytes = (uint64_t)1 << map->shape.slab_shift;
	uint32_t twins[RBX_TWINS_MAX];

	if (!rbx_loan_fits(loan) || loan->remote_addr > UINT64_MAX - slab_bytes)
		return -EINVAL;
	return rbx_loan_index_twins(&map->loans, server, loan, twins, RBX_TWINS_MAX) ? -EEXIST : 0;
}

static int label_check(struct rbx_volume_map *map, uint32_t server, uint64_t label,
		       const struct rbx_loan *loan)
{
	if (!label || label > rbx_volume_map_slabs(map))
		return -EINVAL;
	return loan_check(map, server, loan);
}

/* The replica of this number is in use. */
static void had(struct rbx_upkeep *upkeep, uint32_t server, uint32_t number)
{
	rbx_loan_index_add(&upkeep->flow->map->loans, number);
	upkeep->servers[server].replicas_count++;
}

int rbx_upkeep_adopt(struct rbx_upkeep *upkeep, uint32_t server, uint64_t label,
		     const struct rbx_loan *loan)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	int err = label_check(map, server, label, loan);
	uint32_t slot, number = 0;
	struct rbx_slab *slab;

	if (err)
		return err;
	slab = rbx_slab_at(&map->shape, (uint32_t)(label - 1));
	rbx_slab_lock(slab);
	err = adopt_check(slab, server);
	if (!err) {
		slot = rbx_slab_borrow(slab, server);
		slab->blank = false;
		rbx_slab_lent(slab, slot, loan, RBX_REPLICA_LIVE);
		number = rbx_replica_number(slab, slot);
	}
	rbx_slab_unlock(slab);
	if (err)
		return err;
	had(upkeep, server, number);
	rbx_attention_relist(&map->attention, slab, RBX_PARK_NOT);
	return 0;
}

int rbx_upkeep_may_adopt(struct rbx_upkeep *upkeep, uint32_t server, const struct rbx_loan *loan)
{
	return loan_check(upkeep->flow->map, server, loan);
}

/* What a server that is OUT may have of it was left by a growth that failed. */
int rbx_upkeep_adopt_reserved(struct rbx_upkeep *upkeep, uint32_t server, uint64_t label,
			      const struct rbx_loan *loan)
{
	int err = rbx_upkeep_adopt(upkeep, server, label, loan);
	struct rbx_slab *slab;

	if (err)
		return err;
	slab = rbx_slab_at(&upkeep->flow->map->shape, (uint32_t)(label - 1));
	rbx_slab_lock(slab);
	rbx_extents_begin(slab);
	rbx_slab_unlock(slab);
	return 0;
}

/* ---- Servers that return ----------------------------------------------------------------- */

/* Whether a replica that has returned is of use, in the slab's lock. One that was lost, and has not
 * been given back yet, may be in its place; or a server is being asked for one, and others will be
 * if that one refuses (borrow.c). Then it is made anew like any other. */
static int returned_check(const struct rbx_slab *slab, uint32_t server)
{
	struct rbx_server_set others = { .words = { 0 } };

	if (!slab->read_mask)
		return -ENODATA;
	if (rbx_slab_has_server(slab, server) || rbx_slab_find(slab, RBX_REPLICA_BORROWING) >= 0 ||
	    rbx_slab_servers(slab, &others) >= rbx_slab_shape(slab)->replicas)
		return -EEXIST;
	return 0;
}

int rbx_upkeep_returned(struct rbx_upkeep *upkeep, uint32_t server, uint64_t label,
			const struct rbx_loan *loan)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	int err = label_check(map, server, label, loan);
	uint32_t slot, number = 0;
	struct rbx_slab *slab;
	uint64_t stale = 0;

	if (err)
		return err;
	slab = rbx_slab_at(&map->shape, (uint32_t)(label - 1));
	rbx_slab_lock(slab);
	err = returned_check(slab, server);
	if (!err) {
		slot = rbx_slab_borrow(slab, server);
		stale = rbx_extents_returned(slab);
		rbx_slab_lent(slab, slot, loan, RBX_REPLICA_RETURNED);
		if (slab->has_record)
			rbx_slab_returned_join(slab, rbx_slab_record(slab));
		number = rbx_replica_number(slab, slot);
	}
	(void)rbx_attention_note(&map->attention, slab);
	rbx_slab_unlock(slab);
	if (err)
		return err;
	had(upkeep, server, number);
	upkeep->extents_stale += rbx_server_set_count_word(stale);
	upkeep->extents_kept += rbx_server_set_count_word(~stale);
	return 0;
}

/* ---- What is there ------------------------------------------------------------------ */

uint32_t rbx_upkeep_fewest_copies(const struct rbx_upkeep *upkeep)
{
	const struct rbx_volume_map *map = upkeep->flow->map;
	uint32_t i, count, fewest = map->shape.replicas;

	for (i = 0; i < rbx_volume_map_slabs(map); i++) {
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

/* ---- A server that has FAILED, and is there again ------------------------------------------- */

/* The slot that has this loan of a server, and does not give it back; or -1. */
static int slot_of_loan(const struct rbx_slab *slab, uint32_t server,
			const struct rbx_loan *loan)
{
	uint32_t slot;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		if (rbx_slab_is_lent(slab, slot) &&
		    rbx_replica_is(rbx_slab_replica(slab, slot), server, loan->slab_id,
				   loan->epoch))
			return (int)slot;
	return -1;
}

/* It was never written, was lost, and is not owed yet (loans.c). */
static bool is_about_to_be_owed(const struct rbx_slab *slab, uint32_t server,
				const struct rbx_loan *loan)
{
	uint32_t slot;

	for (slot = 0; slab->blank && slot < rbx_slab_shape(slab)->slots; slot++)
		if (rbx_slab_state(slab, slot) == RBX_REPLICA_LOST &&
		    rbx_replica_is(rbx_slab_replica(slab, slot), server, loan->slab_id,
				   loan->epoch))
			return true;
	return false;
}

/* As long as parts are under way to the former place, that is not given to another server. */
static int again_check(struct rbx_slab *slab, uint32_t server, const struct rbx_loan *loan,
		       uint32_t *number)
{
	int err = 0, slot;

	rbx_slab_lock(slab);
	slot = slot_of_loan(slab, server, loan);
	if (slot < 0)
		err = is_about_to_be_owed(slab, server, loan) ? -EAGAIN : -ENOENT;
	else if (rbx_replica_flights(rbx_slab_replica(slab, (uint32_t)slot)))
		err = -EAGAIN;
	else
		*number = rbx_replica_number(slab, (uint32_t)slot);
	rbx_slab_unlock(slab);
	return err;
}

/* The replica is not in the index of loans. Since it was looked at, requests may have been sent to
 * it, or have lost it. */
static int again_move(struct rbx_upkeep *upkeep, struct rbx_slab *slab, uint32_t number,
		      uint32_t server, const struct rbx_labels_told *told)
{
	struct rbx_replica *replica = rbx_replica_numbered(&upkeep->flow->map->shape, number);
	uint32_t former;
	int err = 0, slot;

	rbx_slab_lock(slab);
	former = rbx_replica_server(replica);
	slot = slot_of_loan(slab, former, &told->loan);
	if (slot < 0)
		err = -ENOENT;
	else if (rbx_replica_flights(replica))
		err = -EAGAIN;
	if (!err) {
		rbx_replica_set_server(replica, server);
		rbx_replica_set_loan(replica, &told->loan);
		rbx_slab_label_not_asked(slab, (uint32_t)slot);
		rbx_slab_unlabel_found(slab, (uint32_t)slot, told->is_complete);
		rbx_extents_joined(slab);
		upkeep->servers[former].replicas_count--;
		upkeep->servers[server].replicas_count++;
	}
	rbx_slab_unlock(slab);
	return err;
}

int rbx_labels_again(struct rbx_upkeep *upkeep, uint32_t former, uint32_t server,
		     const struct rbx_labels_told *told)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	int err = label_check(map, server, told->label, &told->loan);
	struct rbx_slab *slab;
	uint32_t number = 0;

	if (err)
		return err;
	slab = rbx_slab_at(&map->shape, (uint32_t)told->label - 1);
	err = again_check(slab, former, &told->loan, &number);
	if (err == -ENOENT) {
		err = rbx_loans_owed_again(upkeep, former, server, &told->loan);
	} else if (!err) {
		rbx_loan_index_remove(&map->loans, number);
		err = again_move(upkeep, slab, number, server, told);
		rbx_loan_index_add(&map->loans, number);
		rbx_attention_relist(&map->attention, slab, RBX_PARK_NOT);
	}
	return err == -ENOENT ? 0 : err; /* it is there, but not from this place */
}
