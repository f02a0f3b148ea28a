/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sanitizer.h - tells AddressSanitizer which stacks are left and entered. In other builds it
 * does nothing.
 */
#ifndef RBX_SIM_SANITIZER_H
#define RBX_SIM_SANITIZER_H

#include <stddef.h>

#ifdef __SANITIZE_ADDRESS__

#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

/* The main stack, as the first fiber found it. */
static const void *rbx_sanitizer_main_lowest;
static size_t rbx_sanitizer_main_bytes;

static inline void rbx_sanitizer_leave(void **fake_stack, const void *lowest,
				       size_t size_bytes)
{
	__sanitizer_start_switch_fiber(fake_stack, lowest, size_bytes);
}

static inline void rbx_sanitizer_leave_to_main(void **fake_stack)
{
	__sanitizer_start_switch_fiber(fake_stack, rbx_sanitizer_main_lowest,
				       rbx_sanitizer_main_bytes);
}

static inline void rbx_sanitizer_arrive(void *fake_stack)
{
	__sanitizer_finish_switch_fiber(fake_stack, NULL, NULL);
}

static inline void rbx_sanitizer_arrive_first(void)
{
	__sanitizer_finish_switch_fiber(NULL, &rbx_sanitizer_main_lowest,
					&rbx_sanitizer_main_bytes);
}

static inline void rbx_sanitizer_stack_clean(void *lowest, size_t size_bytes)
{
	__asan_unpoison_memory_region(lowest, size_bytes);
}

#else

static inline void rbx_sanitizer_leave(void **fake_stack, const void *lowest,
				       size_t size_bytes)
{
	(void)fake_stack;
	(void)lowest;
	(void)size_bytes;
}

static inline void rbx_sanitizer_leave_to_main(void **fake_stack)
{
	(void)fake_stack;
}

static inline void rbx_sanitizer_arrive(void *fake_stack)
{
	(void)fake_stack;
}

static inline void rbx_sanitizer_arrive_first(void)
{
}

static inline void rbx_sanitizer_stack_clean(void *lowest, size_t size_bytes)
{
	(void)lowest;
	(void)size_bytes;
}

#endif

#endif
