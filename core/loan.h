/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loan.h - memory that a server lent: what is needed to use it and to give it back.
 */
#ifndef RBX_LOAN_H
#define RBX_LOAN_H

#include "core/port.h"

struct rbx_loan {
	uint64_t slab_id;
	uint64_t epoch; /* names this lending of the slab */
	uint64_t remote_addr;
	uint32_t rkey;
};

#endif
