/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pool_watch.h - waits until a pool is as a test wants it. */
#ifndef TEST_POOL_WATCH_H
#define TEST_POOL_WATCH_H

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "include/rdmabox/pool.h"

#define PATIENCE_MS 30000 /* against hangs only */

/* "a:1,b:1" */
static inline const char *pool_list(struct rbx_pool *pool)
{
	static struct rbx_pool_member members[RBX_POOL_MEMBERS_MAX];
	static char list[RBX_POOL_MEMBERS_MAX * 16];
	size_t count = rbx_pool_members_get(pool, members, RBX_POOL_MEMBERS_MAX), i, used = 0;

	list[0] = '\0';
	for (i = 0; i < count && used + 64 < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%.60s",
					 i ? "," : "", members[i].address);
	return list;
}

/* Waits on the event descriptor until the members are these, and the trouble has this in it
 * ("": there is none). */
static inline void pool_becomes(struct rbx_pool *pool, const char *list, const char *trouble)
{
	struct pollfd fd = { .fd = rbx_pool_event_fd(pool), .events = POLLIN };
	char said[512];
	bool is;

	for (;;) {
		is = !strcmp(pool_list(pool), list);
		rbx_pool_trouble(pool, said, sizeof(said));
		is &= *trouble ? !!strstr(said, trouble) : !*said;
		if (is)
			return;
		if (poll(&fd, 1, PATIENCE_MS) != 1)
			fail_msg("the pool is \"%s\" with \"%s\", not \"%s\" with \"%s\"",
				 pool_list(pool), said, list, trouble);
	}
}

#endif
