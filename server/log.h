/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * log.h - the server's log: one line an event, to stderr or to the program.
 *
 * What peers provoke is bounded: a peer that talks nonsense all day is worth
 * one line, not a full disk.
 */
#ifndef RBX_SERVER_LOG_H
#define RBX_SERVER_LOG_H

#include <stdint.h>

#include "fabric/fabric.h"

#define RBX_LOG_LINE_MAX (2 * RBX_ERROR_TEXT_MAX)

struct rbx_log {
	void (*line)(const char *line, void *user); /* NULL: stderr */
	void *user;
};

void rbx_log(const struct rbx_log *log, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#define RBX_HOSTILE_PEERS_MAX 64
#define RBX_HOSTILE_LINES_PER_SECOND 5

/* The peers that were logged, the latest of them, and this second's lines. One for
 * all that peers do wrong, whichever part of the server sees it. */
struct rbx_hostile_log {
	const struct rbx_log *log;
	char peers[RBX_HOSTILE_PEERS_MAX][RBX_NAME_MAX];
	uint32_t next;
	uint64_t second;
	uint32_t lines_count;
	uint64_t left_out_count; /* lines, since the last one */
};

/* Logs that a peer was refused: once for each host and reason, a few in a second.
 * The next line tells how many were left out. */
void rbx_log_hostile(struct rbx_hostile_log *log, const char *peer_name,
		     const char *what, uint64_t now_ns);

#endif
