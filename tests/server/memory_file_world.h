/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory_file_world.h - a server with a memory file, which may be started again.
 */
#ifndef RBX_TESTS_MEMORY_FILE_WORLD_H
#define RBX_TESTS_MEMORY_FILE_WORLD_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/server/named_volume.h"

static inline void begin(struct world *world)
{
	world_options(world);
	snprintf(world->options.memory_file, sizeof(world->options.memory_file),
		 "/dev/shm/rdmabox-memory-%d", (int)getpid());
	unlink(world->options.memory_file);
	world_start(world);
}

static inline void end(struct world *world)
{
	char path[256];

	strcpy(path, world->options.memory_file);
	world_stop(world);
	assert_int_equal(unlink(path), 0);
}

/* What a server says that is started with these options. */
static inline void refused(const struct rbx_server_options *options, int err, const char *text)
{
	struct rbx_server *server;

	assert_int_equal(rbx_server_start(&server, options), err);
	if (!strstr(rbx_last_error(), text))
		fail_msg("it says: %s", rbx_last_error());
}

static inline void leave(struct world *world, struct rbx_session *session, struct rbx_qp *qp)
{
	world->choice.ops->destroy_qp(qp);
	rbx_session_close(session);
}

#endif
