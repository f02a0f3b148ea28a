/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pacing.h - makes the window that the option `window` or the program's policy asks for. */
#ifndef RBX_LIB_PACING_H
#define RBX_LIB_PACING_H

#include "core/window.h"
#include "include/rdmabox/rdmabox.h"

/* Parses "off", a size, or the name of a policy. 0, or -EINVAL with rbx_last_error().
 * bytes_max: the bytes of a fixed window, or 0 if it has no limit; ops: NULL if fixed. */
int rbx_pacing_parse(const char *text, uint64_t *bytes_max,
		     const struct rbx_congestion_ops **ops);

/* Whether the options fit together; 0 or -EINVAL. */
int rbx_pacing_check(const struct rbx_options *options);

/* Makes the window that the options ask for. They were checked before. */
void rbx_pacing_set(const struct rbx_options *options,
		    struct rbx_window *window);

#endif
