/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The numbers of a memory server over HTTP, in the text form of Prometheus. */
#ifndef CLI_METRICS_H
#define CLI_METRICS_H

#include <rdmabox/server.h>

struct metrics;

/**
 * metrics_start() - answers GET /metrics from a thread of its own.
 * @address: "host:port"; the host is a number, port 0 takes a free one.
 * @server: borrowed until metrics_stop().
 *
 * Returns 0, -EINVAL for a bad address, or what binding it failed with.
 */
int metrics_start(struct metrics **metrics, const char *address,
		  struct rbx_server *server);

/** metrics_address() - "host:port" as bound. */
const char *metrics_address(const struct metrics *metrics);

void metrics_stop(struct metrics *metrics);

#endif
