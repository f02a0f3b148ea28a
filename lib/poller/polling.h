/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* polling.h - parses the options `polling` and `pollers`. */
#ifndef RBX_LIB_POLLING_H
#define RBX_LIB_POLLING_H

#include "core/poll_policy.h"
#include "include/rdmabox/rdmabox.h"

struct rbx_polling {
	struct rbx_poll_rule rule;
	uint32_t shared_count; /* pollers of shared:M; else 0 */
};

/* Parses the text of a policy. -EINVAL: rbx_last_error() lists the forms. The CPU budget
 * of the rule is another option: it is set to 100 here. */
int rbx_polling_parse(const char *text, struct rbx_polling *polling);

/* Whether `polling` and `pollers` fit together; 0 or -EINVAL. */
int rbx_polling_check(const struct rbx_options *options);

/* The same for options that were checked before, with the CPU budget set. */
struct rbx_polling rbx_polling_of(const struct rbx_options *options);

#endif
