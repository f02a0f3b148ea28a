/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* remote_memory.c - see remote_memory.h. */
#include "tests/lib/remote_memory.h"

#include <stdlib.h>
#include <string.h>

uint8_t *model;
uint8_t *bytes;

int memory_get(void **state)
{
	(void)state;
	model = calloc(1, TENANT_SLAB_BYTES);
	bytes = aligned_alloc(PAGE, TENANT_SLAB_BYTES);
	return !model || !bytes;
}

int memory_free(void **state)
{
	(void)state;
	free(model);
	free(bytes);
	return 0;
}

void assert_remote_is(struct tenant *tenant, const uint8_t *expected)
{
	memset(bytes, 0xee, TENANT_SLAB_BYTES);
	assert_int_equal(tenant_transfer(tenant, RBX_READ, bytes,
					 TENANT_SLAB_BYTES, 0),
			 0);
	assert_memory_equal(bytes, expected, TENANT_SLAB_BYTES);
}
