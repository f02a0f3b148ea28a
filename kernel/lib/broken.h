/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * broken.h - whether an assertion has failed since the module was loaded.
 *
 * Then nothing may be promised of what is stored: no I/O begins any more, and none that
 * is under way ends well. Everything else goes on, so that programs see errors, and
 * volumes can be detached as far as that is possible still.
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
