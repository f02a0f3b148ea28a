/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * three_servers.h - the servers of a named volume, in this process, for the time of a test.
 */
#ifndef RBX_TESTS_LIB_THREE_SERVERS_H
#define RBX_TESTS_LIB_THREE_SERVERS_H

#include <string.h>

#include "tests/lib/tenant.h"

#define SERVERS 3

static struct rbx_server *servers[SERVERS];
static char pool[512]; /* their addresses, as a list */

static inline int servers_start(void **state)
{
	int i;

	(void)state;
	pool[0] = '\0';
	for (i = 0; i < SERVERS; i++) {
		servers[i] = tenant_server();
		strcat(pool, i ? "," : "");
		strcat(pool, rbx_server_address(servers[i]));
	}
	return 0;
}

static inline int servers_stop(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < SERVERS; i++)
		rbx_server_stop(servers[i]);
	return 0;
}

static inline uint64_t lent_slabs(void)
{
	struct rbx_server_stats stats;
	uint64_t count = 0;
	int i;

	for (i = 0; i < SERVERS; i++) {
		rbx_server_stats_get(servers[i], &stats);
		count += stats.slabs_lent;
	}
	return count;
}

#endif
