/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * trace.h - a record of what happened, as one hash and, on request, as text.
 *
 * Every change of state goes into a running hash together with its time. Two
 * runs with the same hash did the same. With --trace each change is also a line:
 *
 * Values are numbers that the simulation has given out itself (a queue pair's number, an
 * offset), never addresses: those differ from run to run.
 *
 * Values are numbers that the simulation has given out itself (a queue pair's
 * number, an offset), never addresses: those differ from run to run.
 */
#ifndef RBX_SIM_TRACE_H
#define RBX_SIM_TRACE_H

#include <stdio.h>

#include "core/port.h"

struct rbx_sim_change {
	const char *what;
	const char *first_name;
	const char *second_name;
	uint64_t name_hash; /* of `what`, once it was needed */
};

/* RBX_SIM_TRACE(node, "post", "qp", 7, "bytes", 4096) */
#define RBX_SIM_TRACE(node, what, first_name, first, second_name, second)     \
	do {                                                                  \
		static struct rbx_sim_change change_ = { what, first_name,    \
							 second_name, 0 };    \
		rbx_sim_trace_add(&change_, node, (uint64_t)(first),          \
				  (uint64_t)(second));                        \
	} while (0)

void rbx_sim_trace_add(struct rbx_sim_change *change, uint32_t node,
		       uint64_t first, uint64_t second);

/* Where the lines go; NULL: nowhere. */
void rbx_sim_trace_to(FILE *file);

uint64_t rbx_sim_trace_hash(void);
/* For tests: as at the start. */
void rbx_sim_trace_reset(void);

#endif
