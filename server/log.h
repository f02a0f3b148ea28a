/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * log.h - the server's log: one line for each event, to stderr or to the program.
 *
 * The lines that a peer can cause are bounded. A peer that sends nonsense all day must
 * not fill the disk.
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

/* The peers that were logged last, and the number of lines in this second. There is one
 * of these for everything that peers do wrong, in whatever part of the server. */
struct rbx_hostile_log {
	const struct rbx_log *log;
	char peers[RBX_HOSTILE_PEERS_MAX][RBX_NAME_MAX];
	uint32_t next;
	uint64_t second;
	uint32_t lines_count;
	uint64_t left_out_count; /* lines left out since the last one */
};

/* Logs that a peer was refused: once for each host and reason, and a few each second. The
 * next line tells how many were left out. */
void rbx_log_hostile(struct rbx_hostile_log *log, const char *peer_name,
		     const char *what, uint64_t now_ns);

#endif
