/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pacing.h - the option `window` and a program's own policy, as a window. */
#ifndef RBX_LIB_PACING_H
#define RBX_LIB_PACING_H

#include "core/window.h"
#include "include/rdmabox/rdmabox.h"

/* "off", a size, or the name of a policy. 0, or -EINVAL with rbx_last_error().
 * bytes_max: of a fixed window, 0 for none; ops: NULL for a fixed window. */
int rbx_pacing_parse(const char *text, uint64_t *bytes_max,
		     const struct rbx_congestion_ops **ops);

/* Whether the options go together; 0 or -EINVAL. */
int rbx_pacing_check(const struct rbx_options *options);

/* Makes the window that checked options ask for. */
void rbx_pacing_set(const struct rbx_options *options,
		    struct rbx_window *window);

#endif
