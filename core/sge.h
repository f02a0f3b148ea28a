/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sge.h - a scatter/gather entry: one piece of local memory of a work request. */
#ifndef RBX_SGE_H
#define RBX_SGE_H

#include "core/port.h"

struct rbx_sge {
	uint64_t addr;
	uint32_t length_bytes;
	uint32_t lkey;
};

#endif
