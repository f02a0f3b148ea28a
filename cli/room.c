/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Explains why servers have no room for a volume: how much was asked for, and how much
 * each server has. The library's error names one server and no numbers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rdmabox/rdmabox.h>
#include <rdmabox/server.h>

#include "cli/cli.h"

#define ROOM_BYTES 1024

/* "A:P has 12 MiB of 64 MiB free"; "" if it does not answer. */
static void tell_server(struct rbx_context *ctx, const char *address, char *text,
			size_t text_bytes)
{
	struct rbx_server_stats stats;
	char free[32], all[32], slab[32];
	uint64_t free_bytes = 0;

	*text = '\0';
	if (rbx_server_query(ctx, address, &stats))
		return;
	/* More may be lent than a limit that was lowered. */
	if (stats.lent_bytes < stats.memory_bytes)
		free_bytes = stats.memory_bytes - stats.lent_bytes;
	snprintf(text, text_bytes, "%s has %s of %s free, in slabs of %s", address,
		 cli_size_print(free_bytes, free, sizeof(free)),
		 cli_size_print(stats.memory_bytes, all, sizeof(all)),
		 cli_size_print(stats.slab_bytes, slab, sizeof(slab)));
}

int cli_fail_room(const struct cli_command *command, struct rbx_context *ctx,
		  const char *servers, uint64_t bytes, uint32_t replicas)
{
	char refusal[512], list[4096], asked[32], rooms[ROOM_BYTES] = "", one[256];
	char *rest = list, *address;
	size_t used = 0;

	snprintf(refusal, sizeof(refusal), "%s", rbx_last_error());
	snprintf(list, sizeof(list), "%s", servers);
	while ((address = strsep(&rest, ","))) {
		tell_server(ctx, address, one, sizeof(one));
		if (*one && used < sizeof(rooms))
			used += (size_t)snprintf(rooms + used, sizeof(rooms) - used, "; %s",
						 one);
	}
	return cli_fail(command, "%s (asked for: %s, %" PRIu32 " cop%s%s)", refusal,
			cli_size_print(bytes, asked, sizeof(asked)), replicas,
			replicas == 1 ? "y" : "ies", rooms);
}
