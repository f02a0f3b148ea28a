/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * broken.c - sets `broken` when an assertion has failed, see port_os.h.
 */
#include <linux/module.h>

#include "core/port.h"
#include "kernel/lib/broken.h"

bool rbx_is_broken __read_mostly;
module_param_named(broken, rbx_is_broken, bool, 0444);
MODULE_PARM_DESC(broken, "an assertion has failed: every I/O ends with an error");

void rbx_port_break(void)
{
	WRITE_ONCE(rbx_is_broken, true);
}
EXPORT_SYMBOL_GPL(rbx_port_break);
