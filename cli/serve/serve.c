/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox serve: lends this machine's memory until it is told to stop.
 *
 * The server runs in threads of the library; this thread only waits for a
 * signal. SIGTERM and SIGINT drain (drain.c). SIGHUP reads the configuration file and the
 * secrets again (reload.c); without any of these it ends the process, as a closed terminal should.
 *
 * The signals are blocked before the first thread starts, so that every thread
 * inherits that and only sigwait() sees them.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <rdmabox/rdmabox.h>
#include <rdmabox/server.h>

#include "cli/serve/http.h"
#include "cli/serve/serve.h"

/* False: nobody can learn that, or where, it serves. */
static bool print_ready(const struct rbx_server *server,
			const struct http *http)
{
	char memory[32], slab[32];

	printf("ready %s lending %s in slabs of %s, %s%s%s\n",
	       rbx_server_address(server),
	       cli_size_print(serve_options.server.memory_bytes, memory,
			      sizeof(memory)),
	       cli_size_print(serve_options.server.slab_bytes, slab, sizeof(slab)),
	       rbx_server_describe(server),
	       http ? ", metrics at " : "",
	       http ? http_address(http) : "");
	return !fflush(stdout);
}

static void tell_if_everywhere(const struct http *http)
{
	const char *at = http ? http_address(http) : "";

	if (!strncmp(at, "0.0.0.0:", 8) || !strncmp(at, "[::]:", 5))
		serve_tell("rdmabox serve: metrics and status page are at every address "
			   "of this machine, for everybody who reaches it\n");
}

/* What SIGHUP reads again. */
static bool has_files(void)
{
	return *serve_options.config || *serve_options.server.secrets_file ||
	       *serve_options.server.secret_file;
}

/* Until a signal ends it. */
static void wait_and_reload(struct rbx_server *server, const sigset_t *ends, int argc,
			    char **argv)
{
	sigset_t signals = *ends;
	int signal_number;

	if (has_files())
		sigaddset(&signals, SIGHUP);
	while (!sigwait(&signals, &signal_number) && signal_number == SIGHUP)
		serve_reload(server, argc, argv);
}

static int serve(const sigset_t *ends, int argc, char **argv)
{
	struct announce *announce = NULL;
	struct http *http = NULL;
	struct rbx_server *server;
	int rc;

	if (rbx_server_start(&server, &serve_options.server))
		return cli_fail(&serve_command, "%s", rbx_last_error());
	if (*serve_options.metrics_at) {
		rc = http_start(&http, serve_options.metrics_at, server);
		if (rc) {
			rbx_server_stop(server);
			return cli_fail(&serve_command, "cannot serve metrics at %s: "
					"%s; give a free ADDR:PORT, ADDR as a "
					"number", serve_options.metrics_at,
					rc == -EINVAL ? "it is no address" :
							strerror(-rc));
		}
	}
	tell_if_everywhere(http);
	rc = serve_announce_start(&announce, server);
	if (rc) {
		http_stop(http);
		rbx_server_stop(server);
		return rc;
	}
	if (print_ready(server, http)) {
		serve_notify("READY=1");
		wait_and_reload(server, ends, argc, argv);
		serve_notify("STOPPING=1");
		serve_drain(server, ends);
		rc = CLI_EXIT_OK;
	} else {
		cli_fail(&serve_command, "cannot write the ready line to stdout: %s",
			 strerror(errno));
		rc = CLI_EXIT_FAILED;
	}
	serve_announce_stop(announce);
	http_stop(http);
	if (rbx_server_stop(server)) {
		cli_fail(&serve_command, "%s", rbx_last_error());
		rc = CLI_EXIT_FAILED;
	}
	return rc;
}

int cli_serve(int argc, char **argv)
{
	sigset_t ends, reloads;
	int rc;

	/* Before anything else: a reload that comes early must not end the server. */
	sigemptyset(&reloads);
	sigaddset(&reloads, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &reloads, NULL);
	rc = cli_parse(&serve_command, argc, argv);
	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	rc = serve_options_check();
	if (rc)
		return rc;
	/* The readers of stdout and stderr may leave, and the server stays. */
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	if (has_files())
		signal(SIGHUP, SIG_DFL); /* nohup(1) would have it thrown away */
	else
		pthread_sigmask(SIG_UNBLOCK, &reloads, NULL);
	return serve(&ends, argc, argv);
}
