/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The servers of a pool, as the kernel takes them: a list of addresses.
 */
#include <stdlib.h>
#include <string.h>

#include <rdmabox/pool.h>
#include <rdmabox/rdmabox.h>

#include "cli/page/page.h"

/* Those that drain would lend nothing. */
static int list_write(const struct cli_command *command, const char *pool,
		      const struct rbx_pool_member *members, size_t count,
		      char list[PAGE_VALUE_MAX])
{
	size_t length = 0;

	for (size_t i = 0; i < count; i++) {
		size_t more = strlen(members[i].address);

		if (members[i].draining)
			continue;
		if (length + more + 2 > PAGE_VALUE_MAX)
			return cli_fail(command, "%s has more servers than the kernel takes; name those that the "
						 "volume is to have", pool);
		if (length)
			list[length++] = ',';
		memcpy(list + length, members[i].address, more);
		length += more;
	}
	list[length] = '\0';
	return length ? CLI_EXIT_OK : cli_fail(command, "no server in %s lends memory", pool);
}

static int members_read(const struct cli_command *command, const char *text,
			struct rbx_pool_member *members, char list[PAGE_VALUE_MAX])
{
	struct rbx_pool *pool;
	size_t count;
	int rc;

	if (rbx_pool_open(&pool, text))
		return cli_fail(command, "%s", rbx_last_error());
	count = rbx_pool_members_get(pool, members, RBX_POOL_MEMBERS_MAX);
	rc = list_write(command, text, members, count, list);
	(void)rbx_pool_close(pool);
	return rc;
}

int page_pool_resolve(const struct cli_command *command, char pool[PAGE_VALUE_MAX])
{
	struct rbx_pool_member *members;
	char list[PAGE_VALUE_MAX];
	int rc;

	members = calloc(RBX_POOL_MEMBERS_MAX, sizeof(*members));
	if (!members)
		return cli_fail(command, "no memory to read the pool");
	rc = members_read(command, pool, members, list);
	if (!rc)
		strcpy(pool, list);
	free(members);
	return rc;
}
