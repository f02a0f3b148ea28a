/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * broken.h - tells whether an assertion has failed since the module was loaded.
 *
 * After that nothing can be promised about stored data. No I/O begins any more, and no
 * outstanding one succeeds. Everything else goes on, so that programs see errors, and
 * volumes can be detached if that is still possible.
 */
#ifndef RBX_KERNEL_BROKEN_H
#define RBX_KERNEL_BROKEN_H

#include <linux/compiler.h>
#include <linux/types.h>

extern bool rbx_is_broken;

static inline bool rbx_has_broken(void)
{
	return unlikely(READ_ONCE(rbx_is_broken));
}

#endif
