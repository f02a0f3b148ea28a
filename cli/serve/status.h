/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state of a memory server as JSON, and the page that shows it. */
#ifndef CLI_STATUS_H
#define CLI_STATUS_H

#include <stddef.h>

#include <jansson.h>

#include <rdmabox/server.h>

/** status_json() - all that the page shows. The caller owns it; NULL: no memory. */
json_t *status_json(struct rbx_server *server);

/* status.html, made into C by embed.py. */
extern const char status_page[];
extern const size_t status_page_bytes;
/* Its header Content-Security-Policy: only its own script and style, by their hashes. */
extern const char status_page_policy[];

#endif
