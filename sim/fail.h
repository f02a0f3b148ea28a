/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fail.h - the end of a run that has found something.
 *
 * An invariant has a short name, which the run's result repeats: "result FAIL
 * completed-once". The process ends there and then, so that the state is what it
 * was; a run has a process of its own.
 */
#ifndef RBX_SIM_FAIL_H
#define RBX_SIM_FAIL_H

#include <stdint.h>

/* Who is told before the end; NULL: nobody. */
void rbx_sim_fail_hook(void (*hook)(const char *invariant, const char *what));

/* Prints "result FAIL invariant" and what is known, and exits with 1. */
void rbx_sim_fail(const char *invariant, const char *format, ...)
	__attribute__((noreturn, cold, format(printf, 2, 3)));

/* The line that a run ends with, before its result; of this simulation, or of
 * several together. */
void rbx_sim_print_end(void);
void rbx_sim_print_hash(uint64_t events, uint64_t virtual_ns);

#define RBX_SIM_EXIT_FAILED 1

#endif
