/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fail.h - ends a run that has found a failure.
 *
 * An invariant has a short name, which the run's result repeats: "result FAIL
 * completed-once". The process ends at that point, so the state stays as it was; a run has a
 * process of its own.
 */
#ifndef RBX_SIM_FAIL_H
#define RBX_SIM_FAIL_H

#include <stdint.h>

/* A function that is called before the end; may be NULL. */
void rbx_sim_fail_hook(void (*hook)(const char *invariant, const char *what));

/* Prints "result FAIL invariant" and the details, and exits with 1. */
void rbx_sim_fail(const char *invariant, const char *format, ...)
	__attribute__((noreturn, cold, format(printf, 2, 3)));

/* The last line of a run, before its result: for this simulation, or for several together. */
void rbx_sim_print_end(void);
void rbx_sim_print_hash(uint64_t events, uint64_t virtual_ns);

#define RBX_SIM_EXIT_FAILED 1

#endif
