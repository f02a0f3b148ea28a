/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* status.c - how a volume is, by its slabs and servers. */
#include <string.h>

#include "lib/sized.h"
#include "lib/volume/reader.h"
#include "lib/volume/volume.h"

void rbx_volume_status_sized(struct rbx_volume *volume,
			     struct rbx_volume_status *status,
			     size_t size_bytes)
{
	struct rbx_volume_status now;
	struct rbx_census census;

	memset(status, 0, size_bytes);
	if (rbx_guard_use(volume->ctx, "rbx_volume_status"))
		return;
	if (volume->reader)
		rbx_reader_census(volume->reader, &census);
	else
		rbx_upkeep_census(&volume->control.upkeep, &census);
	now = (struct rbx_volume_status){
		.servers = census.servers,
		.servers_up = census.servers_up,
		.slabs = census.slabs,
		.slabs_whole = census.whole,
		.slabs_rebuilding = census.rebuilding,
		.slabs_lost = census.dead,
		.slabs_last = census.last,
		.slabs_holed = census.holes,
		.slabs_together = census.together,
		.slabs_blank = census.blank,
		.replicas = volume->options.replicas,
		.checksums = volume->control.flow.map->shape.checksums != NULL,
		.rebuilt_bytes =
			RBX_LOAD_RELAXED(&volume->control.flow.rebuild.copied_bytes),
		.replicas_moved = census.moved,
	};
	rbx_scrubber_get(&volume->scrubber, &now.scrub_passes, &now.scrub_bad_pages);
	memcpy(status, &now, RBX_MIN(size_bytes, sizeof(now)));
}
