/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stretch.h - walks along the memory of an I/O, by the device's and the CPU's addresses.
 *
 * Mapping a scatter list for DMA makes a second list in the same entries: the device's
 * addresses of these pages. The two lists need not be cut at the same places, as an IOMMU
 * may join neighbours into one range. A walk goes along both. Each stretch of it is one
 * range for the CPU, and so for any device.
 *
 * The CPU sees what the device has written only after a sync for the CPU, or after
 * unmapping. Reading it does not take it away from the device, so nothing has to be done
 * before the device writes there again (Documentation/core-api/dma-api-howto.rst).
 */
#ifndef RBX_KERNEL_STRETCH_H
#define RBX_KERNEL_STRETCH_H

#include <linux/scatterlist.h>

#ifdef CONFIG_HIGHMEM
#error "RDMAbox reads pages at the addresses that they have for good: no highmem"
#endif

struct rbx_stretch {
	u64 addr; /* the device's */
	const void *memory; /* the CPU's */
	u32 length_bytes; /* up to where either range ends; 0: the list has ended */
	/* Used by the walk: the entry of each list, and how much of it is done. */
	struct scatterlist *mapped;
	struct scatterlist *sg;
	u32 mapped_left; /* entries */
	u32 mapped_bytes;
	u32 sg_bytes;
};

static inline void rbx_stretch_look(struct rbx_stretch *stretch)
{
	stretch->length_bytes = 0;
	if (!stretch->mapped_left)
		return;
	stretch->addr = sg_dma_address(stretch->mapped) + stretch->mapped_bytes;
	stretch->length_bytes =
		sg_dma_len(stretch->mapped) - stretch->mapped_bytes;
	stretch->memory = (const char *)sg_virt(stretch->sg) + stretch->sg_bytes;
	stretch->length_bytes = min(stretch->length_bytes,
				    stretch->sg->length - stretch->sg_bytes);
}

/* The first stretch of a list with mapped_count mapped entries. */
static inline void rbx_stretch_first(struct rbx_stretch *stretch,
				     struct scatterlist *sg, u32 mapped_count)
{
	*stretch = (struct rbx_stretch){
		.mapped = sg,
		.sg = sg,
		.mapped_left = mapped_count,
	};
	rbx_stretch_look(stretch);
}

/* Goes on by so many bytes: into this stretch, or to the next one. */
static inline void rbx_stretch_next(struct rbx_stretch *stretch, u32 bytes)
{
	stretch->mapped_bytes += bytes;
	if (stretch->mapped_bytes == sg_dma_len(stretch->mapped)) {
		stretch->mapped = sg_next(stretch->mapped);
		stretch->mapped_left--;
		stretch->mapped_bytes = 0;
	}
	stretch->sg_bytes += bytes;
	if (stretch->sg_bytes == stretch->sg->length) {
		stretch->sg = sg_next(stretch->sg);
		stretch->sg_bytes = 0;
	}
	rbx_stretch_look(stretch);
}

#endif
