/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * switch.h - switches from one stack to another.
 *
 * There is one file for each processor. To the compiler a switch is a call that takes long:
 * registers that a call may change are changed, all others are kept on the stack that is
 * left.
 */
#ifndef RBX_SIM_SWITCH_H
#define RBX_SIM_SWITCH_H

#include <stddef.h>

struct rbx_sim_stack {
	void *pointer; /* where it was left */
};

/* Prepares a stack on which main(arg) begins at the first switch to it. main() never returns. */
void rbx_sim_stack_prepare(struct rbx_sim_stack *stack, void *lowest,
			   size_t size_bytes, void (*main)(void *arg),
			   void *arg);

/* Leaves one stack and goes on where the other was left. */
void rbx_sim_stack_switch(struct rbx_sim_stack *from,
			  const struct rbx_sim_stack *to);

#endif
