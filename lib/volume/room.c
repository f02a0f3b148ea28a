/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * room.c - says how much memory a volume needed that could not be opened, and how much each
 * of its servers has for it. A server's refusal alone has no numbers.
 */
#include <stdio.h>

#include "lib/volume/volume.h"

#define MIB 1048576.0

int rbx_volume_room_explain(struct rbx_volume *volume, int err)
{
	const struct rbx_volume_control *control = &volume->control;
	const struct rbx_volume_map *map = control->flow.map;
	const uint64_t slab_bytes = 1ull << map->shape.slab_shift;
	char rooms[RBX_ERROR_TEXT_MAX] = "";
	size_t end = 0;

	for (uint32_t i = 0; i < control->server_count && end < sizeof(rooms); i++) {
		const struct rbx_peer *peer = control->servers[i].peer;
		uint64_t bytes;

		if (!peer || rbx_upkeep_server_is_down(&control->upkeep, i))
			continue;
		/* What this volume got until it was refused counts as well. No thread makes rounds
		 * yet, so it is read as it is (core/upkeep_state.h). */
		bytes = rbx_peer_free_bytes(peer) +
			control->upkeep.servers[i].replicas_count * slab_bytes;
		end += (size_t)snprintf(rooms + end, sizeof(rooms) - end, "; %s has %.10g MiB free",
					rbx_peer_name(peer), (double)bytes / MIB);
	}
	return rbx_error(err, "%s (asked for: %.10g MiB, %u cop%s, in slabs of %.10g MiB%s)",
			 rbx_last_error(), (double)map->size_bytes / MIB,
			 map->shape.replicas, map->shape.replicas == 1 ? "y" : "ies",
			 (double)slab_bytes / MIB, rooms);
}
