/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lender_volumes.c - what is lent to named volumes, which have no lease and outlive the sessions
 * of their writers (lender.h).
 */
#include "core/lender.h"

#include "core/lender_table.h"

#define NONE RBX_LENDER_NONE

uint32_t rbx_lender_keep(struct rbx_lender *l, uint64_t volume_id, uint32_t owner)
{
	uint32_t i;

	if (l->counts.volumes == l->config.volumes_max)
		return RBX_REASON_TOO_MANY_VOLUMES;
	i = rbx_lender_entry_take(l, volume_id, owner);
	l->clients[i].is_kept = true;
	l->counts.volumes++;
	return RBX_REASON_NONE;
}

static struct rbx_lender_client *kept_find(struct rbx_lender *l, uint64_t volume_id)
{
	struct rbx_lender_client *kept;
	uint32_t i = rbx_id_map_find(&l->sessions, volume_id);

	RBX_ASSERT(i != NONE);
	kept = &l->clients[i];
	RBX_ASSERT(kept->is_kept);
	return kept;
}

/* What is being prepared ends, and what was lent after an epoch. */
static void kept_end_after(struct rbx_lender *l, struct rbx_lender_client *kept,
			   uint64_t epoch)
{
	l->counts.slabs_revoked +=
		rbx_lender_slabs_end_after(l, (uint32_t)(kept - l->clients), epoch);
}

void rbx_lender_opened(struct rbx_lender *l, uint64_t volume_id)
{
	struct rbx_lender_client *kept = kept_find(l, volume_id);

	kept_end_after(l, kept, UINT64_MAX);
	kept->has_writer = true;
	kept->kept_epoch = l->last_epoch;
}

void rbx_lender_writer_resumed(struct rbx_lender *l, uint64_t volume_id, uint64_t last_epoch)
{
	struct rbx_lender_client *kept = kept_find(l, volume_id);

	kept_end_after(l, kept, RBX_MAX(last_epoch, kept->kept_epoch));
}

void rbx_lender_closed(struct rbx_lender *l, uint64_t volume_id)
{
	struct rbx_lender_client *kept = kept_find(l, volume_id);

	kept_end_after(l, kept, UINT64_MAX);
	kept->has_writer = false;
}

bool rbx_lender_next_of(const struct rbx_lender *l, uint64_t volume_id, uint64_t after_slab_id,
			struct rbx_lender_loan *loan)
{
	uint32_t kept = rbx_id_map_find(&l->sessions, volume_id);
	uint64_t i;

	for (i = after_slab_id; i < l->slabs_used; i++) {
		if (!rbx_lender_slab_is_had(&l->slabs[i]) || l->slabs[i].client != kept)
			continue;
		*loan = (struct rbx_lender_loan){ i + 1, l->slabs[i].epoch };
		return true;
	}
	return false;
}

/* Slabs between those that were lent are free, and in their queue after restored(). */
void rbx_lender_restore(struct rbx_lender *l, uint64_t volume_id,
			const struct rbx_lender_loan *loan)
{
	struct rbx_lender_client *kept = kept_find(l, volume_id);
	uint32_t index = (uint32_t)loan->slab_id - 1;

	RBX_ASSERT(loan->slab_id && loan->slab_id <= l->config.slabs_count);
	RBX_ASSERT(loan->epoch > l->last_epoch);
	while (l->slabs_used <= index)
		l->slabs[l->slabs_used++] = (struct rbx_lender_slab){ .state = SLAB_FREE };
	RBX_ASSERT(l->slabs[index].state == SLAB_FREE);
	l->slabs[index] = (struct rbx_lender_slab){
		.state = SLAB_LENT,
		.epoch = loan->epoch,
		.client = (uint32_t)(kept - l->clients),
		.owner = (uint16_t)kept->owner,
	};
	rbx_lender_slab_join(l, index);
	l->last_epoch = loan->epoch;
	l->owners[kept->owner].slabs_count++;
	kept->slabs_count++;
	l->counts.slabs_free--;
	l->counts.slabs_lent++;
}

void rbx_lender_restored(struct rbx_lender *l, uint64_t last_epoch)
{
	RBX_ASSERT(last_epoch >= l->last_epoch);
	l->last_epoch = last_epoch;
	for (uint32_t i = 0; i < l->slabs_used; i++)
		if (l->slabs[i].state == SLAB_FREE)
			rbx_lender_queue_put(l, &l->free_slabs, i);
}
