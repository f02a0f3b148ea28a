/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * switch_x86_64.c - see switch.h.
 *
 * A stack that was left ends with the registers that a call preserves, and the address where
 * it goes on. A new one looks as if it had been left so, with main() in r12 and its argument
 * in r13.
 */
#include "sim/switch.h"

#include <stdint.h>

/* Top of a stack that was left: six registers, then where to go on; what is
 * above that begins at 16 bytes, as before a call. */
enum { R15, R14, R13, R12, RBX, RBP, RETURN, ABOVE, WORDS = ABOVE + 2 };

__asm__(".text\n"
	".p2align 4\n"
	".hidden rbx_sim_stack_exchange\n"
	".globl rbx_sim_stack_exchange\n"
	".type rbx_sim_stack_exchange, @function\n"
	"rbx_sim_stack_exchange:\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	push %r12\n"
	"	push %r13\n"
	"	push %r14\n"
	"	push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	".size rbx_sim_stack_exchange, . - rbx_sim_stack_exchange\n"
	".p2align 4\n"
	".hidden rbx_sim_stack_begin\n"
	".globl rbx_sim_stack_begin\n"
	".type rbx_sim_stack_begin, @function\n"
	"rbx_sim_stack_begin:\n"
	"	mov %r13, %rdi\n"
	"	call *%r12\n"
	"	ud2\n"
	".size rbx_sim_stack_begin, . - rbx_sim_stack_begin\n");

void rbx_sim_stack_exchange(void **from, void *to);
void rbx_sim_stack_begin(void);

void rbx_sim_stack_prepare(struct rbx_sim_stack *stack, void *lowest,
			   size_t size_bytes, void (*main)(void *arg),
			   void *arg)
{
	uintptr_t top = ((uintptr_t)lowest + size_bytes) & ~(uintptr_t)15;
	uintptr_t *words = (uintptr_t *)top - WORDS;

	words[R12] = (uintptr_t)main;
	words[R13] = (uintptr_t)arg;
	words[RBP] = 0;
	words[RETURN] = (uintptr_t)rbx_sim_stack_begin;
	stack->pointer = words;
}

void rbx_sim_stack_switch(struct rbx_sim_stack *from,
			  const struct rbx_sim_stack *to)
{
	rbx_sim_stack_exchange(&from->pointer, to->pointer);
}
