/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bounce.c - bounce buffers, see bounce.h.
 */
#include <linux/slab.h>

#include "core/limits.h"
#include "kernel/block/bounce.h"

struct rbx_bounce {
	struct rbx_bounces *bounces;
	struct rbx_bounce *next; /* in the list of free ones */
	void *memory;
	struct scatterlist sg; /* of it */
	/* The I/O's own. */
	struct scatterlist *own;
	u32 own_count;
};

struct rbx_bounces {
	spinlock_t lock; /* guards the list; interrupts off */
	struct rbx_bounce *free;
	struct rbx_bounce all[RBX_BOUNCES];
};

static struct rbx_bounce *take(struct rbx_bounces *bounces)
{
	struct rbx_bounce *bounce;
	unsigned long flags;

	spin_lock_irqsave(&bounces->lock, flags);
	bounce = bounces->free;
	if (bounce)
		bounces->free = bounce->next;
	spin_unlock_irqrestore(&bounces->lock, flags);
	return bounce;
}

static void give(struct rbx_bounce *bounce)
{
	struct rbx_bounces *bounces = bounce->bounces;
	unsigned long flags;

	spin_lock_irqsave(&bounces->lock, flags);
	bounce->next = bounces->free;
	bounces->free = bounce;
	spin_unlock_irqrestore(&bounces->lock, flags);
}

struct rbx_bounces *rbx_bounces_make(u32 bounce_bytes)
{
	struct rbx_bounces *bounces = kzalloc(sizeof(*bounces), GFP_KERNEL);
	u32 i;

	if (!bounces)
		return NULL;
	spin_lock_init(&bounces->lock);
	for (i = 0; i < RBX_BOUNCES; i++) {
		struct rbx_bounce *bounce = &bounces->all[i];

		bounce->bounces = bounces;
		bounce->memory = kmalloc(bounce_bytes, GFP_KERNEL);
		if (!bounce->memory) {
			rbx_bounces_free(bounces);
			return NULL;
		}
		give(bounce);
	}
	return bounces;
}

void rbx_bounces_free(struct rbx_bounces *bounces)
{
	u32 i;

	for (i = 0; bounces && i < RBX_BOUNCES; i++)
		kfree(bounces->all[i].memory);
	kfree(bounces);
}

bool rbx_bounce_spares(const struct rbx_io *io)
{
	struct scatterlist *sg;
	u32 lengths = 0, i;

	for_each_sg(io->sg, sg, io->sg_count, i)
		lengths |= sg->length;
	return lengths % RBX_PAGE_BYTES == 0;
}

static u32 length_of(const struct rbx_io *io)
{
	struct scatterlist *sg;
	u32 length_bytes = 0, i;

	for_each_sg(io->sg, sg, io->sg_count, i)
		length_bytes += sg->length;
	return length_bytes;
}

struct rbx_bounce *rbx_bounce_begin(struct rbx_bounces *bounces,
				    struct rbx_io *io)
{
	struct rbx_bounce *bounce = take(bounces);
	u32 length_bytes = length_of(io);

	if (!bounce)
		return NULL;
	if (io->op == RBX_IO_WRITE)
		sg_copy_to_buffer(io->sg, io->sg_count, bounce->memory,
				  length_bytes);
	sg_init_one(&bounce->sg, bounce->memory, length_bytes);
	bounce->own = io->sg;
	bounce->own_count = io->sg_count;
	io->sg = &bounce->sg;
	io->sg_count = 1;
	return bounce;
}

void rbx_bounce_end(struct rbx_bounce *bounce, struct rbx_io *io)
{
	io->sg = bounce->own;
	io->sg_count = bounce->own_count;
	if (io->op == RBX_IO_READ && !io->status)
		sg_copy_from_buffer(io->sg, io->sg_count, bounce->memory,
				    bounce->sg.length);
	give(bounce);
}
