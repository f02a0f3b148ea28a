/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* members.c - the members of a pool, see members.h. */
#include "pool/members.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/host_port.h"

/* A list of servers separates by commas, a line of a file by spaces. */
static bool is_plain(char c)
{
	return c > ' ' && c < 0x7f && c != ',' && c != '"' && c != '\\';
}

bool rbx_member_address_is_good(const char *address)
{
	struct rbx_host_port at;
	size_t i;

	for (i = 0; address[i]; i++)
		if (i + 1 == RBX_POOL_ADDRESS_BYTES || !is_plain(address[i]) ||
		    address[i] == '/' || address[i] == '=')
			return false;
	return !rbx_host_port_parse(address, false, &at);
}

/* Whether `labels` has a label of that name before `end`. */
static bool has_label(const char *labels, const char *end, const char *name,
		      size_t name_bytes)
{
	const char *at = labels;

	while (at < end) {
		if (!strncmp(at, name, name_bytes) && at[name_bytes] == '=')
			return true;
		at += strcspn(at, ",") + 1;
	}
	return false;
}

bool rbx_member_labels_are_good(const char *labels)
{
	const char *label = labels;

	if (strnlen(labels, RBX_POOL_LABELS_BYTES) == RBX_POOL_LABELS_BYTES)
		return false;
	while (*label) {
		size_t length = strcspn(label, ","), name_bytes = strcspn(label, "="), i;

		for (i = 0; i < length; i++)
			if (!is_plain(label[i]))
				return false;
		if (!name_bytes || name_bytes >= length ||
		    has_label(labels, label, label, name_bytes))
			return false;
		label += length;
		if (*label == ',' && !*++label)
			return false;
	}
	return true;
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
