/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* copies.c - memory for the copies of a rebuild (core/rebuild.h). */
#include <stdlib.h>

#include "lib/volume/volume.h"

int rbx_volume_copies_make(struct rbx_volume *volume)
{
	const struct rbx_slab_shape *shape = &volume->control.flow.map->shape;
	size_t cell_bytes = (size_t)1 << shape->cell_shift;
	uint32_t i;

	volume->copies_memory =
		aligned_alloc(RBX_PAGE_BYTES, RBX_COPIES_MAX * cell_bytes);
	if (!volume->copies_memory)
		return rbx_error(-ENOMEM, "out of memory");
	for (i = 0; i < RBX_COPIES_MAX; i++) {
		void *copy = calloc(1, rbx_rebuild_copy_size(shape));

		if (!copy)
			return rbx_error(-ENOMEM, "out of memory");
		rbx_rebuild_lend(&volume->control.flow, i, copy,
				 (uintptr_t)volume->copies_memory +
					 i * cell_bytes);
	}
	return 0;
}

void rbx_volume_copies_free(struct rbx_volume *volume)
{
	uint32_t i;

	for (i = 0; i < RBX_COPIES_MAX; i++)
		free(volume->control.flow.rebuild.copies[i]);
	free(volume->copies_memory);
}
