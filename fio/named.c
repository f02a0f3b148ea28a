// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Asks the servers how long a named volume is.
 *
 * fio wants to know the length of a file in setup(), in the parent of the jobs. There the volume
 * cannot be opened yet: it would be the parent's. So each server is asked for its volumes, over a
 * context that is closed again before any job begins. A server that cannot be reached is left out,
 * for the volume may have replicas at others; the open decides whether it can do without. A volume
 * never becomes smaller. So if servers differ, as after a grow that one of them missed, the
 * greatest length is right.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <fio.h>

#include <rdmabox/pool.h>
#include <rdmabox/named_volume.h>

#include "named.h"

/* What the servers have said so far. */
struct answers {
	const char *name;
	uint64_t bytes; /* 0: none has it */
	int err; /* why another one did not */
	char why[512];
};

static void note_error(struct answers *answers, int err, const char *why)
{
	answers->err = err;
	snprintf(answers->why, sizeof(answers->why), "%s", why);
}

/* All volumes of a server, in memory that the caller frees. Returns their number or -errno. */
static int list(struct rbx_context *ctx, const char *server, struct rbx_volume_info **infos)
{
	int count, room = 64;

	for (;;) {
		*infos = calloc((size_t)room, sizeof(**infos));
		if (!*infos)
			return -ENOMEM;
		count = rbx_volume_list(ctx, server, *infos, (uint32_t)room);
		if (count <= room)
			return count;
		room = count;
		free(*infos);
	}
}

static void ask_server(struct rbx_context *ctx, const char *server, struct answers *answers)
{
	struct rbx_volume_info *infos;
	int i, count = list(ctx, server, &infos);

	for (i = 0; i < count; i++)
		if (!strcmp(infos[i].name, answers->name) &&
		    infos[i].volume_bytes > answers->bytes)
			answers->bytes = infos[i].volume_bytes;
	free(infos);
	if (count < 0)
		note_error(answers, count, count == -ENOMEM ? "out of memory" : rbx_last_error());
}

static void ask_members(struct rbx_context *ctx, const char *servers, struct answers *answers)
{
	struct rbx_pool_member *members = calloc(RBX_POOL_MEMBERS_MAX, sizeof(*members));
	struct rbx_pool *pool;
	size_t i, count;
	int err;

	if (!members) {
		note_error(answers, -ENOMEM, "out of memory");
		return;
	}
	err = rbx_pool_open(&pool, servers);
	if (err) {
		note_error(answers, err, rbx_last_error());
		free(members);
		return;
	}
	count = rbx_pool_members_get(pool, members, RBX_POOL_MEMBERS_MAX);
	for (i = 0; i < count; i++)
		ask_server(ctx, members[i].address, answers);
	rbx_pool_close(pool);
	free(members);
}

int named_bytes_ask(const struct rbx_options *options, const char *servers, const char *name,
		    uint64_t *bytes)
{
	struct answers answers = { .name = name };
	struct rbx_context *ctx;
	int err = rbx_open(&ctx, options);

	if (err) {
		log_err("rdmabox: %s\n", rbx_last_error());
		return err;
	}
	ask_members(ctx, servers, &answers);
	rbx_close(ctx);
	*bytes = answers.bytes;
	if (answers.bytes)
		return 0;
	if (answers.err) {
		log_err("rdmabox: no server that answers has volume %s: %s\n", name, answers.why);
		return answers.err;
	}
	log_err("rdmabox: there is no volume %s on these servers; rdmabox volume list shows those that there are, and rdmabox volume create makes one\n",
		name);
	return -ENOENT;
}
