/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * away.c - servers that did not answer a command which went on without them.
 */
#include <stdlib.h>
#include <string.h>

#include <rdmabox/pool.h>

#include "cli/volume/volume.h"

struct away {
	char *address;
	char *why;
};

static struct away *servers;
static size_t servers_count;

void volume_away_forget(void)
{
	for (size_t i = 0; i < servers_count; i++) {
		free(servers[i].address);
		free(servers[i].why);
	}
	free(servers);
	servers = NULL;
	servers_count = 0;
}

/* Without memory for it, a server is not told of. */
void volume_away_note(const char *server, const char *why, void *user)
{
	struct away *more = realloc(servers, (servers_count + 1) * sizeof(*servers));
	struct away one = { strdup(server), strdup(why) };

	(void)user;
	if (more)
		servers = more;
	if (!more || !one.address || !one.why) {
		free(one.address);
		free(one.why);
		return;
	}
	servers[servers_count++] = one;
}

void volume_away_print(const struct cli_command *command, const char *and_so)
{
	for (size_t i = 0; i < servers_count; i++)
		(void)cli_fail(command, "%s is away%s: %s", servers[i].address, and_so,
			       servers[i].why);
}

json_t *volume_away_json(void)
{
	json_t *list = json_array();

	for (size_t i = 0; i < servers_count; i++)
		json_array_append_new(list, json_pack("{s:s, s:s}", "address", servers[i].address,
						      "error", servers[i].why));
	return list;
}

static bool is_away(const char *address)
{
	for (size_t i = 0; i < servers_count; i++)
		if (!strcmp(servers[i].address, address))
			return true;
	return false;
}

/* A list of the others. */
static char *others_print(const struct rbx_pool_member *members, size_t count)
{
	char *list = calloc(count + 1, RBX_POOL_ADDRESS_BYTES + 1), *end = list;

	for (size_t i = 0; i < count && list; i++)
		if (!is_away(members[i].address))
			end += sprintf(end, "%s%s", end == list ? "" : ",", members[i].address);
	return list;
}

char *volume_pool_there(void)
{
	struct rbx_pool_member *members;
	struct rbx_pool *pool;
	char *list = NULL;
	size_t count;

	if (!servers_count || rbx_pool_open(&pool, volume_wanted.pool))
		return strdup(volume_wanted.pool);
	members = calloc(RBX_POOL_MEMBERS_MAX, sizeof(*members));
	if (members) {
		count = rbx_pool_members_get(pool, members, RBX_POOL_MEMBERS_MAX);
		list = others_print(members, count);
	}
	free(members);
	rbx_pool_close(pool);
	return list;
}
