/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper_grow.c - a named volume with replicas becomes larger while it is open; see keeper.h.
 *
 * The record says so first. When it was chosen, the next client finds as much, and the map gets the
 * new slabs, unless it has them already (lib/volume/named_reserve.c). So nothing is written to a
 * slab that another client would not know.
 *
 * If too few servers answer, that has failed. When enough are there again, the record is proposed
 * once more, as some may have accepted it, and the map stays as it is until the volume is to grow
 * again. The record never says less than before.
 */
#include "client/keeper_state.h"

int rbx_keeper_growth_refused(const struct rbx_keeper *keeper)
{
	return rbx_named_stop_error(keeper->named, -ESTALE, "it does not grow") ?:
	       rbx_error(-ESTALE, "volume %s does not grow: another client has opened it, or too few of its servers answer",
			 keeper->named->record.name);
}

int rbx_keeper_grow(struct rbx_keeper *keeper, uint64_t size_bytes)
{
	struct rbx_growth *growth = &keeper->growth;
	int err;

	rbx_monitor_enter(&growth->monitor);
	growth->size_bytes = size_bytes;
	growth->is_over = false;
	growth->is_new = true;
	rbx_monitor_leave(&growth->monitor);
	rbx_volume_upkeep_wake(keeper->control);
	rbx_monitor_enter(&growth->monitor);
	while (!growth->is_over)
		rbx_monitor_wait(&growth->monitor);
	err = growth->err;
	rbx_monitor_leave(&growth->monitor);
	return err == -ESTALE ? rbx_keeper_growth_refused(keeper) : err;
}

/* ---- By the upkeep thread ---------------------------------------------------------------- */

static void over(struct rbx_growth *growth, int err)
{
	growth->is_wanted = growth->is_proposed = false;
	rbx_monitor_enter(&growth->monitor);
	growth->err = err;
	growth->is_over = true;
	rbx_monitor_wake(&growth->monitor);
	rbx_monitor_leave(&growth->monitor);
}

void rbx_keeper_growth_look(struct rbx_keeper *keeper)
{
	struct rbx_growth *growth = &keeper->growth;

	rbx_monitor_enter(&growth->monitor);
	growth->is_wanted |= growth->is_new;
	growth->is_new = false;
	rbx_monitor_leave(&growth->monitor);
	if (growth->is_wanted && keeper->is_over)
		over(growth, -ESTALE);
}

void rbx_keeper_growth_begin(struct rbx_keeper *keeper)
{
	struct rbx_growth *growth = &keeper->growth;

	if (!growth->is_wanted)
		return;
	growth->is_proposed = true;
	keeper->named->record.size_bytes =
		RBX_MAX(keeper->named->record.size_bytes, growth->size_bytes);
	rbx_named_change(keeper->named);
	rbx_keeper_propose(keeper);
}

void rbx_keeper_growth_chosen(struct rbx_keeper *keeper)
{
	struct rbx_growth *growth = &keeper->growth;

	if (growth->is_proposed)
		over(growth, rbx_volume_map_grow(keeper->control->flow.map,
						 keeper->named->record.size_bytes));
}
