/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* paced_endpoints.h - endpoints whose operations go through the window, and theirs. */
#ifndef RBX_TESTS_PACED_ENDPOINTS_H
#define RBX_TESTS_PACED_ENDPOINTS_H

#include "tests/lib/endpoints.h"

#define KIB 1024u

static inline void open_paced(struct endpoints *e)
{
	endpoint_options.paced = 1;
	endpoints_open(e);
}

/* An operation on the memory of the other side. */
static inline struct rbx_operation at(const struct side *there, uint32_t kind,
				      size_t offset, uintptr_t user)
{
	return (struct rbx_operation){
		.kind = kind,
		.key = there->key.key,
		.address = there->key.address + offset,
		.user = (void *)user,
	};
}

#endif
