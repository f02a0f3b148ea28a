/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lost_slabs.h - slabs of a named volume that no server has, after servers were given up.
 *
 * Such a slab was never written, or all that had it are gone. So it is no zeros: reads of it fail,
 * and so do writes, for what was not written would read as zeros at the next open, when the slab
 * has a label. It stays so as long as the volume is open: a dead slab of a named volume is not
 * lent anew.
 */
#ifndef RBX_LOST_SLABS_H
#define RBX_LOST_SLABS_H

#include "core/port.h"

struct rbx_upkeep;

/* All slabs were found that servers have, and there was no round yet. Returns how many others there
 * are. */
uint32_t rbx_upkeep_lost_slabs(struct rbx_upkeep *upkeep);

#endif
