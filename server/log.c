/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * log.c - writes the server's log, see log.h. A line is written with one call, so lines
 * of several threads do not mix. Unprintable characters become '?', as names and texts
 * may come from a peer.
 */
#include "server/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "server/stderr_line.h"

void rbx_log(const struct rbx_log *log, const char *format, ...)
{
	char line[RBX_LOG_LINE_MAX];
	va_list args;
	size_t i;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	for (i = 0; line[i]; i++)
		if (line[i] < ' ' || line[i] > '~')
			line[i] = '?';
	if (log->line)
		log->line(line, log->user);
	else
		rbx_stderr_line(line);
}

/*
 * "1.2.3.4:567" and a text become "1.2.3.4 text": a new port does not make a new peer.
 * Nor does a new process of this host: "process 89 (same host)" becomes "process text".
 */
static void hostile_name(char *name, const char *peer_name, const char *what)
{
	if (!strncmp(peer_name, "process ", 8)) {
		snprintf(name, RBX_NAME_MAX, "process %s", what);
		return;
	}

	const char *colon = strrchr(peer_name, ':');
	int length = colon ? (int)(colon - peer_name) : (int)strlen(peer_name);

	snprintf(name, RBX_NAME_MAX, "%.*s %s", length, peer_name, what);
}

/* True: one more line may be written now. */
static bool line_fits(struct rbx_hostile_log *log, uint64_t now_ns)
{
	if (now_ns / 1000000000 != log->second) {
		log->second = now_ns / 1000000000;
		log->lines_count = 0;
	}
	if (log->lines_count < RBX_HOSTILE_LINES_PER_SECOND) {
		log->lines_count++;
		return true;
	}
	log->left_out_count++;
	return false;
}

void rbx_log_hostile(struct rbx_hostile_log *log, const char *peer_name,
		     const char *what, uint64_t now_ns)
{
	char name[RBX_NAME_MAX];
	uint32_t i;

	hostile_name(name, peer_name, what);
	for (i = 0; i < RBX_HOSTILE_PEERS_MAX; i++)
		if (!strcmp(log->peers[i], name))
			return;
	if (!line_fits(log, now_ns))
		return;
	if (log->left_out_count)
		rbx_log(log->log, "%llu more refusals of peers were not logged",
			(unsigned long long)log->left_out_count);
	log->left_out_count = 0;
	strcpy(log->peers[log->next], name);
	log->next = (log->next + 1) % RBX_HOSTILE_PEERS_MAX;
	rbx_log(log->log, "refused %s: %s (logged once for each host and reason)", peer_name, what);
}
