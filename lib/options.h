/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* options.h - the checks behind rbx_options, and what their texts mean. */
#ifndef RBX_LIB_OPTIONS_H
#define RBX_LIB_OPTIONS_H

#include <stdbool.h>

#include "include/rdmabox/rdmabox.h"

/* 0, or -EINVAL with rbx_last_error() naming the option and what it allows. */
int rbx_options_check(const struct rbx_options *options);

struct rbx_mode {
	const char *name;
	bool merge;
	bool chain;
};

/* The paper's four ways of batching, by name; NULL: unknown. */
const struct rbx_mode *rbx_mode_find(const char *name);

#endif
