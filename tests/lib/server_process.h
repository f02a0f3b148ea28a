/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * server_process.h - `rdmabox serve` as a process of its own, to be killed,
 * stopped and started again.
 */
#ifndef RBX_TESTS_SERVER_PROCESS_H
#define RBX_TESTS_SERVER_PROCESS_H

#include <sys/types.h>

struct server_process {
	pid_t pid;
	char address[64];
};

/* Runs it with 32 MiB in slabs of 4 MiB and waits until it is ready. listen:
 * "127.0.0.1:0" takes a free port. more: one more argument, or NULL. */
void server_process_start(struct server_process *server, const char *listen,
			  const char *more);
/* SIGKILL, and waits until it is gone. No effect on one that is. */
void server_process_kill(struct server_process *server);
void server_process_signal(struct server_process *server, int signal);

#endif
