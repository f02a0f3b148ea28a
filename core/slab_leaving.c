/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_leaving.c - a replica of a named volume leaves a server that is in use.
 *
 * The next client takes each replica that a server has labelled as complete. So one that leaves
 * must have lost its label before it misses a write that is acknowledged, and another one must
 * have its label by then:
 *
 *	LEAVING            another server is asked for memory, which gets a copy and is labelled
 *	superfluous        there is one labelled replica more than wanted, which is this one: its
 *	                   server is asked to take the label back. It goes on taking every write
 *	unlabelled         the server has answered: the replica is LOST, and is given back when
 *	                   nothing is under way to it
 *
 * If the client dies before the label is taken back, the next one finds one replica more than
 * wanted. All of them have what was acknowledged, and it gives one back (labels.c).
 *
 * From the moment when a server is asked nobody knows whether it still has the label. So the
 * replica does not count as a copy from then on (last_copies.c), even if the one that took its
 * place is lost meanwhile. If the server dies instead of answering, it is put OUT like any other;
 * or it has FAILED, and tells whether it has the label when it comes again. If it refuses, it
 * becomes a suspect (held.h), and it is not waited for any more. The replica counts again, as those
 * at a suspect do: it is lost if its server is put OUT, and stays LEAVING if that has FAILED.
 *
 * A replica at a server that is about to be put OUT still has its label, and counts for what is
 * superfluous here. labels.c takes no label back meanwhile: that could be the last one.
 *
 * A replica that leaves only to move to a server with more memory free (balance.h) stays if fewer
 * others would be left than wanted: the server that it moves to is lost, or that of another one.
 * There may be no other server, and the replica is as good as before. If it was to move within its
 * failure domain, the copy is given up for that, but if it may be labelled already the replica
 * leaves. And it leaves once its label was asked back, as that may be gone.
 *
 * An existing replica may differ after a write that failed by a fault of this machine, and then
 * one of them is the truth (slab_rebuild.c). That may be the one that leaves, so it is kept until
 * all are equal again.
 */
#include "core/slab.h"

/* Readable replicas that the next client finds. */
static uint32_t labelled_count(const struct rbx_slab *slab)
{
	uint32_t slot, count = 0;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		count += slab->read_mask >> slot & 1 && !rbx_slab_is_unlabelling(slab, slot);
	return count;
}

bool rbx_slab_is_unlabelling(const struct rbx_slab *slab, uint32_t slot)
{
	enum rbx_replica_state state = rbx_slab_state(slab, slot);

	return slab->has_record &&
	       (state == RBX_REPLICA_LEAVING || state == RBX_REPLICA_REBUILDING) &&
	       rbx_slab_record(slab)->unlabel_asked_mask >> slot & 1;
}

int rbx_slab_superfluous(const struct rbx_slab *slab)
{
	uint32_t slot;

	if (!rbx_slab_shape(slab)->is_guarded || !slab->has_record || rbx_slab_targets(slab) ||
	    labelled_count(slab) <= rbx_slab_shape(slab)->replicas)
		return -ENOENT;
	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		if (rbx_slab_state(slab, slot) == RBX_REPLICA_LEAVING &&
		    !rbx_slab_is_unlabelling(slab, slot))
			return (int)slot;
	return -ENOENT;
}

void rbx_slab_unlabel_asked(struct rbx_slab *slab, uint32_t slot)
{
	RBX_ASSERT(rbx_slab_state(slab, slot) == RBX_REPLICA_LEAVING);
	rbx_slab_record(slab)->unlabel_asked_mask |= (uint8_t)(1u << slot);
}

void rbx_slab_unlabelled_lose(struct rbx_slab *slab)
{
	uint32_t slot;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		if (rbx_slab_is_unlabelling(slab, slot) &&
		    rbx_slab_record(slab)->unlabelled_mask >> slot & 1)
			rbx_slab_lose(slab, slot);
}

/* The slots with this loan whose servers were asked. */
static uint8_t unlabelling_mask(const struct rbx_slab *slab, uint32_t server,
				const struct rbx_loan *loan)
{
	uint32_t slot;
	uint8_t mask = 0;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		if (rbx_slab_is_unlabelling(slab, slot) &&
		    rbx_replica_is(rbx_slab_replica(slab, slot), server, loan->slab_id,
				   loan->epoch))
			mask |= (uint8_t)(1u << slot);
	return mask;
}

void rbx_slab_unlabel_done(struct rbx_slab *slab, uint32_t server, const struct rbx_loan *loan)
{
	uint8_t mask = unlabelling_mask(slab, server, loan);

	if (mask)
		rbx_slab_record(slab)->unlabelled_mask |= mask;
	if (!rbx_slab_targets(slab))
		rbx_slab_unlabelled_lose(slab);
	slab->attention = true;
}

void rbx_slab_unlabel_failed(struct rbx_slab *slab, uint32_t server, const struct rbx_loan *loan)
{
	uint8_t mask = unlabelling_mask(slab, server, loan);

	if (mask)
		rbx_slab_record(slab)->unlabel_asked_mask &= (uint8_t)~mask;
	rbx_slab_moves_end(slab);
	slab->attention = true;
}

void rbx_slab_unlabel_found(struct rbx_slab *slab, uint32_t slot, bool has_label)
{
	const struct rbx_replica *replica = rbx_slab_replica(slab, slot);
	struct rbx_loan loan = rbx_replica_loan(replica);
	bool leaves = rbx_slab_state(slab, slot) == RBX_REPLICA_LEAVING;

	if (has_label) {
		rbx_slab_unlabel_failed(slab, rbx_replica_server(replica), &loan);
		return;
	}
	/* Only what leaves has lost it, perhaps at a server that was not waited for. */
	if (leaves && !slab->has_record) {
		rbx_slab_lose(slab, slot);
		return;
	}
	if (leaves)
		rbx_slab_unlabel_asked(slab, slot);
	rbx_slab_unlabel_done(slab, rbx_replica_server(replica), &loan);
}

/* ---- Only to a server that has more memory free -------------------------------*/

static bool is_staying(const struct rbx_slab *slab, uint32_t slot)
{
	switch (rbx_slab_state(slab, slot)) {
	case RBX_REPLICA_LIVE:
	case RBX_REPLICA_RETURNED:
		return true;
	case RBX_REPLICA_REBUILDING:
		return !slab->has_record || !(rbx_slab_record(slab)->leaves_mask >> slot & 1);
	default:
		return false;
	}
}

uint32_t rbx_slab_staying(const struct rbx_slab *slab)
{
	uint32_t slot, count = 0;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++)
		count += is_staying(slab, slot);
	return count;
}

void rbx_slab_move_away(struct rbx_slab *slab, uint32_t slot, uint32_t target)
{
	struct rbx_slab_record *record = rbx_slab_record(slab);

	record->moves_mask |= (uint8_t)(1u << slot);
	record->moves_to = (uint8_t)target;
	if (rbx_slab_state(slab, slot) == RBX_REPLICA_LIVE)
		rbx_slab_move(slab, slot, RBX_REPLICA_LEAVING);
	else if (rbx_slab_state(slab, slot) == RBX_REPLICA_REBUILDING)
		record->leaves_mask |= (uint8_t)(1u << slot);
}

/* Whether a replica that leaves only to move goes on with that. One whose label may be gone does in
 * any case. */
static bool is_moving(const struct rbx_slab *slab, uint32_t slot)
{
	return rbx_slab_is_lent(slab, slot) &&
	       (rbx_slab_is_unlabelling(slab, slot) ||
		rbx_slab_staying(slab) >= rbx_slab_shape(slab)->replicas);
}

/* Whether it was to move within its failure domain. Then it and the target are not both to stay. */
static bool is_with_target(const struct rbx_slab *slab, uint32_t slot)
{
	const struct rbx_domains *domains = rbx_slab_shape(slab)->domains;
	uint32_t target = rbx_slab_record(slab)->moves_to;

	return domains && rbx_slab_is_lent(slab, slot) && rbx_slab_is_lent(slab, target) &&
	       rbx_domains_are_same(domains, rbx_replica_server(rbx_slab_replica(slab, slot)),
				    rbx_replica_server(rbx_slab_replica(slab, target)));
}

/* What is not complete is given up. This is called again then, and the other one stays. */
static void target_lose(struct rbx_slab *slab)
{
	uint32_t target = rbx_slab_record(slab)->moves_to;

	if (rbx_slab_state(slab, target) == RBX_REPLICA_REBUILDING &&
	    !rbx_slab_stands_in(slab, target) && !rbx_slab_may_be_labelled(slab, target))
		rbx_slab_lose(slab, target);
}

void rbx_slab_moves_end(struct rbx_slab *slab)
{
	struct rbx_slab_record *record = rbx_slab_record(slab);
	uint32_t slot;

	for (slot = 0; record && slot < rbx_slab_shape(slab)->slots; slot++) {
		if (!(record->moves_mask >> slot & 1) || is_moving(slab, slot))
			continue;
		if (is_with_target(slab, slot)) {
			target_lose(slab);
			continue;
		}
		record->moves_mask &= (uint8_t)~(1u << slot);
		record->leaves_mask &= (uint8_t)~(1u << slot);
		if (rbx_slab_state(slab, slot) == RBX_REPLICA_LEAVING)
			rbx_slab_move(slab, slot, RBX_REPLICA_LIVE);
	}
}

bool rbx_slab_leave(struct rbx_slab *slab, uint32_t server)
{
	uint32_t slot;

	for (slot = 0; slot < rbx_slab_shape(slab)->slots; slot++) {
		const struct rbx_replica *replica;
		struct rbx_loan loan;

		if (rbx_slab_state(slab, slot) == RBX_REPLICA_EMPTY)
			continue;
		replica = rbx_slab_replica(slab, slot);
		if (rbx_replica_server(replica) != server)
			continue;
		loan = rbx_replica_loan(replica);
		(void)rbx_slab_evict(slab, server, loan.slab_id, loan.epoch);
		return true;
	}
	return false;
}
