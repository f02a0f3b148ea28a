/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pool_lines_fuzz.c - the lines of a pool's file: the members of what is accepted have
 * addresses and labels that would be accepted again, each address once.
 */
#include <stdlib.h>
#include <string.h>

#include "pool/pool.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
	struct rbx_members members = { .count = 0 };
	char *text = malloc(length_bytes + 1);
	size_t i;

	if (!text)
		return 0;
	memcpy(text, bytes, length_bytes);
	text[length_bytes] = '\0';
	if (!rbx_pool_lines_parse("fuzz", text, length_bytes, &members) &&
	    members.count > RBX_POOL_MEMBERS_MAX)
		abort();
	for (i = 0; i < members.count; i++)
		if (!rbx_member_address_is_good(members.list[i].address) ||
		    !rbx_member_labels_are_good(members.list[i].labels))
			abort();
	rbx_members_free(&members);
	free(text);
	return 0;
}
