/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * copies.c - memory for the copies of a rebuild (core/rebuild.h). It is allocated
 * beforehand, as I/Os may wait for a rebuild.
 */
#include <linux/delay.h>
#include <linux/slab.h>

#include "client/joining.h"
#include "kernel/lib/late.h"
#include "kernel/lib/volume/volume.h"

static int copy_make(struct rbx_volume *volume, uint32_t index)
{
	const struct rbx_slab_shape *shape = &volume->control.flow.map->shape;
	struct rbx_piece *copy;

	volume->copies_memory[index] =
		kmalloc((size_t)1 << shape->cell_shift, GFP_KERNEL);
	copy = kzalloc(rbx_rebuild_copy_size(shape), GFP_KERNEL);
	if (!volume->copies_memory[index] || !copy) {
		kfree(copy);
		return -ENOMEM;
	}
	copy->memory = volume->copies_memory[index];
	/* Any slab, until a copy begins: then the slab is set, under the lock of the new
	 * one. */
	copy->slab = rbx_slab_at(&volume->control.flow.map->shape, 0);
	/* From one device to another, perhaps. */
	rbx_rebuild_lend(&volume->control.flow, index, copy,
			 rbx_late_addr(volume->copies_memory[index]));
	return 0;
}

int rbx_volume_copies_make(struct rbx_volume *volume)
{
	int err = 0;
	uint32_t i;

	for (i = 0; i < RBX_COPIES_MAX && !err; i++)
		err = copy_make(volume, i);
	return err;
}

void rbx_volume_copies_end(struct rbx_volume *volume)
{
	while (rbx_rebuild_is_under_way(&volume->control.flow))
		msleep(1);
	rbx_volume_pollers_visit(&volume->control); /* the last copy may be in their hands */
	rbx_volume_mappings_close(volume);
	rbx_volume_tails_close(volume);
	rbx_volume_copies_free(volume);
}

void rbx_volume_copies_free(struct rbx_volume *volume)
{
	uint32_t i;

	for (i = 0; i < RBX_COPIES_MAX; i++) {
		kfree(volume->copies_memory[i]);
		kfree(volume->control.flow.rebuild.copies[i]);
	}
}
