/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* options.h - the checks behind rbx_options, and what their texts mean. */
#ifndef RBX_LIB_OPTIONS_H
#define RBX_LIB_OPTIONS_H

#include <stdbool.h>

#include "include/rdmabox/rdmabox.h"

/* The program's options and, for what they have not got, the defaults. 0, or -EINVAL
 * with rbx_last_error() for a size that is none. */
int rbx_options_take(struct rbx_options *taken,
		     const struct rbx_options *options);

/* 0, or -EINVAL with rbx_last_error() naming the option and what it allows. */
int rbx_options_check(const struct rbx_options *options);

/* "64K" and the like; false: not a number of that form. */
bool rbx_number_parse(const char *text, int64_t *value);

struct rbx_mode {
	const char *name;
	bool merge;
	bool chain;
};

/* The paper's four ways of batching, by name; NULL: unknown. */
const struct rbx_mode *rbx_mode_find(const char *name);

/* The option `overload`: "off", or WORK_REQUESTS:NS. A cost of 0: off. */
int rbx_overload_parse(const char *text, uint32_t *work_requests,
		       uint32_t *cost_ns);

#endif
