/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * switch_ucontext.c - see switch.h: by libc, for processors without a file of their own. Each
 * switch makes two system calls, for a signal mask that never changes.
 */
#include "sim/switch.h"

#include <stdint.h>
#include <stdlib.h>
#include <ucontext.h>

static void begin(unsigned int main_high, unsigned int main_low,
		  unsigned int arg_high, unsigned int arg_low)
{
	void (*main)(void *) =
		(void (*)(void *))(uintptr_t)((uint64_t)main_high << 32 |
					      main_low);

	main((void *)(uintptr_t)((uint64_t)arg_high << 32 | arg_low));
}

/* The context is at the lower end of its stack. */
void rbx_sim_stack_prepare(struct rbx_sim_stack *stack, void *lowest,
			   size_t size_bytes, void (*main)(void *arg),
			   void *arg)
{
	uint64_t main_bits = (uintptr_t)main, arg_bits = (uintptr_t)arg;
	ucontext_t *context = lowest;

	getcontext(context);
	context->uc_stack.ss_sp = context + 1;
	context->uc_stack.ss_size = size_bytes - sizeof(*context);
	context->uc_link = NULL;
	makecontext(context, (void (*)(void))begin, 4,
		    (unsigned int)(main_bits >> 32), (unsigned int)main_bits,
		    (unsigned int)(arg_bits >> 32), (unsigned int)arg_bits);
	stack->pointer = context;
}

void rbx_sim_stack_switch(struct rbx_sim_stack *from,
			  const struct rbx_sim_stack *to)
{
	static ucontext_t first;

	if (!from->pointer)
		from->pointer = &first;
	swapcontext(from->pointer, to->pointer);
}
