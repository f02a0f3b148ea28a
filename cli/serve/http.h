/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A memory server's numbers over HTTP: metrics for Prometheus, a page for people. */
#ifndef CLI_HTTP_H
#define CLI_HTTP_H

#include <rdmabox/server.h>

struct http;

/**
 * http_start() - answers GET and HEAD of /metrics, / and /status.json from a thread of
 * its own.
 * @address: "host:port"; the host is a number and must be given, port 0 takes a free one.
 * @server: borrowed until http_stop().
 *
 * Returns 0, -EINVAL for a bad address, or what binding it failed with.
 */
int http_start(struct http **http, const char *address,
	       struct rbx_server *server);

/** http_address() - "host:port" as bound. */
const char *http_address(const struct http *http);

void http_stop(struct http *http);

#endif
