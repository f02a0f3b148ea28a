/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* server_process.c - see server_process.h. */
#include "tests/lib/server_process.h"

#include <libgen.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The build puts the program beside the tests. */
static const char *program_path(void)
{
	static char path[PATH_MAX + 32];
	char self[PATH_MAX] = "";

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	snprintf(path, sizeof(path), "%s/../cli/rdmabox", dirname(self));
	return path;
}

void server_process_start(struct server_process *server, const char *listen,
			  const char *more)
{
	const char *program = program_path();
	char line[256] = "";
	FILE *out;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	server->pid = fork();
	assert_true(server->pid >= 0);
	if (server->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* not to outlive a crash */
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		execl(program, "rdmabox", "serve", "--listen", listen,
		      "--memory", "32M", "--slab", "4M", "--fabric", "soft:tcp",
		      more, NULL);
		_exit(127);
	}
	close(ends[1]);
	out = fdopen(ends[0], "r");
	assert_non_null(out);
	if (!fgets(line, sizeof(line), out) ||
	    sscanf(line, "ready %63s", server->address) != 1)
		fail_msg("%s serve is not ready: \"%s\"", program, line);
	fclose(out);
}

void server_process_signal(struct server_process *server, int signal)
{
	assert_int_equal(kill(server->pid, signal), 0);
}

void server_process_kill(struct server_process *server)
{
	if (server->pid == 0)
		return;
	kill(server->pid, SIGKILL);
	waitpid(server->pid, NULL, 0);
	server->pid = 0;
}
