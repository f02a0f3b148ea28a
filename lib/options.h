/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* options.h - takes and checks rbx_options, and parses the texts in them. */
#ifndef RBX_LIB_OPTIONS_H
#define RBX_LIB_OPTIONS_H

#include <stdbool.h>

#include "include/rdmabox/rdmabox.h"

/* Copies the program's options, with defaults for fields that its version does not have.
 * 0, or -EINVAL with rbx_last_error() if the size of the struct is wrong. */
int rbx_options_take(struct rbx_options *taken,
		     const struct rbx_options *options);

/* 0, or -EINVAL: rbx_last_error() names the option and the values that it may have. */
int rbx_options_check(const struct rbx_options *options);

/* Parses a number such as "64K". False if it is not one. */
bool rbx_number_parse(const char *text, int64_t *value);

struct rbx_mode {
	const char *name;
	bool merge;
	bool chain;
};

/* Finds one of the paper's four batching modes by its name. NULL: unknown. */
const struct rbx_mode *rbx_mode_find(const char *name);

/* Parses the option `overload`: "off" or WORK_REQUESTS:NS. A cost of 0 means off. */
int rbx_overload_parse(const char *text, uint32_t *work_requests,
		       uint32_t *cost_ns);

#endif
