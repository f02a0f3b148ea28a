/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* mode.c - the text of the option `memory_monitor`. */
#include <errno.h>
#include <string.h>

#include "lib/error.h"
#include "lib/monitor/monitor.h"

int rbx_memory_monitor_mode_parse(const char *text, enum rbx_memory_monitor_mode *mode)
{
	static const char *const names[] = {
		[RBX_MEMORY_MONITOR_AUTO] = "auto",
		[RBX_MEMORY_MONITOR_USERFAULTFD] = "userfaultfd",
		[RBX_MEMORY_MONITOR_NONE] = "none",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], text) != 0)
			continue;
		*mode = (enum rbx_memory_monitor_mode)i;
		return 0;
	}
	return rbx_error(-EINVAL, "memory_monitor=%s: must be one of auto|userfaultfd|none",
			 text);
}
