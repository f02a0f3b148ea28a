/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * even_out.c - makes the replicas of a named volume equal whose client has crashed, see upkeep.h.
 *
 * In extents that servers have noted (extents.h) replicas may differ: writes that were under way
 * reached some of them only. What was acknowledged is at all of them, so each is valid. But one has
 * to be chosen before anything is read. So nothing is served meanwhile, and it does not matter if
 * the one that was chosen is lost: another one takes its place.
 *
 * The copies are those of a rebuild (slab_rebuild.c): the other replicas are its targets, and
 * stand in. The extents stay noted until all slabs are equal, in case this client crashes, too.
 */
#include "core/extents.h"
#include "core/slab_rebuild.h"
#include "core/upkeep_state.h"

void rbx_upkeep_found_intent(struct rbx_upkeep *upkeep, uint64_t label, uint64_t word,
			     uint64_t behind)
{
	struct rbx_volume_map *map = upkeep->flow->map;

	RBX_ASSERT(label && label <= map->slab_count);
	rbx_extents_found(map, (uint32_t)(label - 1), word, behind);
}

void rbx_upkeep_even_out(struct rbx_upkeep *upkeep)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	uint32_t i;

	for (i = 0; map->shape.is_guarded && i < map->slab_count; i++) {
		struct rbx_slab *slab = rbx_slab_at(&map->shape, i);

		rbx_slab_lock(slab);
		if (rbx_extents_unequal(slab))
			rbx_slab_differ_everywhere(slab);
		(void)rbx_attention_note(&map->attention, slab);
		rbx_slab_unlock(slab);
	}
}

/* Whether a replica is still to be made like another one. */
static bool is_uneven(const struct rbx_slab *slab)
{
	uint32_t targets = rbx_slab_targets(slab);

	for (; targets; targets &= targets - 1)
		if (rbx_slab_stands_in(slab, (uint32_t)__builtin_ctz(targets)))
			return true;
	return false;
}

static int slab_look(struct rbx_flow *flow, const struct rbx_slab *slab)
{
	const struct rbx_slab_record *record = rbx_slab_record(slab);

	if (!is_uneven(slab))
		return 0;
	return rbx_flow_any_failed(flow, slab) || (record && record->copy_rests) ? -EIO : -EAGAIN;
}

int rbx_upkeep_evened_out(struct rbx_upkeep *upkeep, uint32_t *next)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	int err = 0;

	for (; map->shape.is_guarded && !err && *next < map->slab_count; *next += !err) {
		const struct rbx_slab *slab = rbx_slab_at(&map->shape, *next);

		rbx_slab_lock(slab);
		err = slab_look(upkeep->flow, slab);
		rbx_slab_unlock(slab);
	}
	if (!err && map->shape.is_guarded)
		rbx_extents_forget_found(upkeep->flow);
	return err;
}
