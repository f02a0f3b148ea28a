/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* members.c - the members of a pool, see members.h. */
#include "pool/members.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/host_port.h"
#include "core/server_labels.h"

_Static_assert(RBX_POOL_LABELS_BYTES == RBX_SERVER_LABELS_BYTES, "the same labels");

bool rbx_member_address_is_good(const char *address)
{
	struct rbx_host_port at;
	size_t i;

	for (i = 0; address[i]; i++)
		if (i + 1 == RBX_POOL_ADDRESS_BYTES || !rbx_label_has(address[i]) ||
		    address[i] == '/' || address[i] == '=')
			return false;
	return !rbx_host_port_parse(address, false, &at);
}

bool rbx_member_labels_are_good(const char *labels)
{
	return rbx_server_labels_are_good(labels);
}

void rbx_member_init(struct rbx_pool_member *member, const char *address)
{
	*member = (struct rbx_pool_member){
		.memory_bytes = RBX_POOL_NOT_TOLD,
		.free_bytes = RBX_POOL_NOT_TOLD,
	};
	strncpy(member->address, address, sizeof(member->address) - 1);
}

int rbx_members_add(struct rbx_members *members,
		    const struct rbx_pool_member *member)
{
	struct rbx_pool_member *list;
	size_t i;

	for (i = 0; i < members->count; i++)
		if (!strcmp(members->list[i].address, member->address))
			return -EEXIST;
	if (members->count == RBX_POOL_MEMBERS_MAX)
		return -ENOSPC;
	/* Whenever the number is a power of two, the room is full, and is doubled. */
	if (!(members->count & (members->count - 1))) {
		list = realloc(members->list, (members->count ? 2 * members->count : 1) *
						      sizeof(*list));
		if (!list)
			return -ENOMEM;
		members->list = list;
	}
	members->list[members->count++] = *member;
	return 0;
}

bool rbx_members_are_equal(const struct rbx_members *a, const struct rbx_members *b)
{
	return a->count == b->count &&
	       (!a->count || !memcmp(a->list, b->list, a->count * sizeof(*a->list)));
}

void rbx_members_free(struct rbx_members *members)
{
	free(members->list);
	*members = (struct rbx_members){ .count = 0 };
}
