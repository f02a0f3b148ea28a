/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * members.h - the members of a pool, and what may be one.
 *
 * What a pool says came from a file or a network. So each text of a member is checked
 * here before anybody prints it or connects to it.
 */
#ifndef RBX_POOL_MEMBERS_H
#define RBX_POOL_MEMBERS_H

#include <stdbool.h>

#include "include/rdmabox/pool.h"

/* "host:port" of a client, only characters that print, and it fits. */
bool rbx_member_address_is_good(const char *address);
/* "name=value,name=value", or "": only characters that print, no name twice, and it fits. */
bool rbx_member_labels_are_good(const char *labels);

/* A member of which only the address is known. The address was checked. */
void rbx_member_init(struct rbx_pool_member *member, const char *address);

struct rbx_members {
	size_t count;
	struct rbx_pool_member *list; /* NULL while there is none */
};

/* Adds a copy. 0; -EEXIST: its address is there already; -ENOSPC: there are
 * RBX_POOL_MEMBERS_MAX; -ENOMEM. No error text: the caller knows where it stands. */
int rbx_members_add(struct rbx_members *members,
		    const struct rbx_pool_member *member);
bool rbx_members_are_equal(const struct rbx_members *a, const struct rbx_members *b);
void rbx_members_free(struct rbx_members *members);

#endif
