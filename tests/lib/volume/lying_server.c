/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lying_server.c - see lying_server.h. */
#include "tests/lib/volume/lying_server.h"

#include "server/state.h"

void server_say_size(struct rbx_server *server, uint64_t size_bytes)
{
	pthread_mutex_lock(&server->lock);
	server->volumes.kept[0].record.size_bytes = size_bytes;
	pthread_mutex_unlock(&server->lock);
}
