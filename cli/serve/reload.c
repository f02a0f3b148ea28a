/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SIGHUP: what a server is told is read again, from the configuration file and the
 * command line, and what can change while it serves is changed: all of it or nothing.
 */
#include <string.h>

#include <rdmabox/rdmabox.h>

#include "cli/serve/serve.h"

/* Returns 0 after all has been taken over. */
static int take_over(struct rbx_server *server, const struct serve_options *former)
{
	if (strcmp(serve_options.metrics_at, former->metrics_at))
		return cli_fail(&serve_command, "--metrics cannot change while the server "
				"runs: leave it as it was, or restart the server");
	if (strcmp(serve_options.announce_at, former->announce_at) ||
	    strcmp(serve_options.address, former->address))
		return cli_fail(&serve_command, "--announce and --address cannot change "
				"while the server runs: leave them as they were, or restart the server");
	if (rbx_server_reload(server, &serve_options.server))
		return cli_fail(&serve_command, "%s", rbx_last_error());
	return 0;
}

void serve_reload(struct rbx_server *server, int argc, char **argv)
{
	const struct serve_options former = serve_options;
	char memory[32], quota[32];

	cli_fail_may_wait = false;
	if (cli_parse(&serve_command, argc, argv) || serve_options_check() ||
	    take_over(server, &former)) {
		serve_options = former;
		serve_tell("rdmabox serve: not reloaded: it goes on as before\n");
		return;
	}
	serve_tell("rdmabox serve: reloaded: lending %s, to one credential at most %s%s\n",
		   cli_size_print(serve_options.server.memory_bytes, memory, sizeof(memory)),
		   serve_options.server.quota_bytes ?
			   cli_size_print(serve_options.server.quota_bytes, quota,
					  sizeof(quota)) :
			   "all of it",
		   *serve_options.server.secrets_file ? "; the secrets were read" :
		   *serve_options.server.secret_file  ? "; the secret was read" :
							"");
}
