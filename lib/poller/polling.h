/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* polling.h - what the options `polling` and `pollers` mean. */
#ifndef RBX_LIB_POLLING_H
#define RBX_LIB_POLLING_H

#include "core/poll_policy.h"
#include "include/rdmabox/rdmabox.h"

struct rbx_polling {
	struct rbx_poll_rule rule;
	uint32_t shared_count; /* pollers of shared:M; else 0 */
};

/* The text of a policy; -EINVAL, and rbx_last_error() lists the forms. The
 * rule's CPU budget stands in another option: it is 100 here. */
int rbx_polling_parse(const char *text, struct rbx_polling *polling);

/* Whether `polling` and `pollers` go together; 0 or -EINVAL. */
int rbx_polling_check(const struct rbx_options *options);

/* The same of options that were checked before, with the CPU budget. */
struct rbx_polling rbx_polling_of(const struct rbx_options *options);

#endif
