/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * three_servers.h - the servers of a named volume, in this process, for the time of a test.
 */
#ifndef RBX_TESTS_LIB_THREE_SERVERS_H
#define RBX_TESTS_LIB_THREE_SERVERS_H

#include <string.h>

#include "tests/lib/tenant.h"

#define SERVERS 3
#define PAGE 4096u

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

/* A page that tells where it belongs. */
static inline void write_page(struct rbx_volume *volume, uint64_t offset)
{
	uint8_t page[PAGE];

	tenant_fill(page, PAGE, offset);
	assert_int_equal(rbx_write(volume, page, PAGE, offset), 0);
}

static inline void expect_page(struct rbx_volume *volume, uint64_t offset)
{
	uint8_t page[PAGE], expected[PAGE];

	tenant_fill(expected, PAGE, offset);
	assert_int_equal(rbx_read(volume, page, PAGE, offset), 0);
	assert_memory_equal(page, expected, PAGE);
}

#endif
