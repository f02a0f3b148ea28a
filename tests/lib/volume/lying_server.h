/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lying_server.h - a server of this process that tells what is not true of its first volume. */
#ifndef RBX_TESTS_LIB_LYING_SERVER_H
#define RBX_TESTS_LIB_LYING_SERVER_H

#include <stdint.h>

struct rbx_server;

/* From now on its record says that the volume is so long. */
void server_say_size(struct rbx_server *server, uint64_t size_bytes);

#endif
