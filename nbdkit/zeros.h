/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * zeros.h - makes ranges read as zeros.
 */
#ifndef RDMABOX_NBDKIT_ZEROS_H
#define RDMABOX_NBDKIT_ZEROS_H

#include <stdbool.h>
#include <stdint.h>

#include <rdmabox/rdmabox.h>

/** zeros_slab_bytes() - the size of the volume's slabs; 0: it cannot be told. */
uint64_t zeros_slab_bytes(struct rbx_volume *volume);

/**
 * zeros_are_fast() - whether zeros_make() of the range would write nothing.
 * @slab_bytes: of an on_demand volume, else 0.
 */
bool zeros_are_fast(uint64_t slab_bytes, uint64_t offset, uint64_t length);

/**
 * zeros_make() - makes the range read as zeros.
 * @slab_bytes: as above; 0 also if memory has to stay.
 *
 * Whole slabs go back to their servers; over the rest zeros are written.
 * Returns 0 or -errno as rbx_write(). Blocks.
 */
int zeros_make(struct rbx_volume *volume, uint64_t slab_bytes, uint64_t offset,
	       uint64_t length);

#endif
