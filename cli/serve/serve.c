/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox serve: lends this machine's memory until it is told to stop.
 *
 * The server runs in threads of the library; this thread only waits for a
 * signal. SIGTERM and SIGINT drain: nothing more is lent, and clients that have
 * somewhere to go move their data there. What is still lent when the drain
 * timeout is over is given up, and clients with replicas rebuild elsewhere. A
 * second signal ends the process on the spot, which clients see as a crash.
 *
 * The signals are blocked before the first thread starts, so that every thread
 * inherits that and only sigwait() below sees them.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rdmabox/rdmabox.h>
#include <rdmabox/server.h>

#include "cli/cli.h"
#include "cli/serve/metrics.h"
#include "cli/reach.h"

#define DRAIN_TIMEOUT_S_DEFAULT 30
#define LEASE_MS_MIN 100

static struct rbx_server_options server_options;
static char metrics_at[128];
static double drain_timeout_s = DRAIN_TIMEOUT_S_DEFAULT;

static const struct cli_option options[] = {
	{ "listen", "ADDR:PORT", "where to serve; port 0 takes a free one",
	  cli_set_text, server_options.listen,
	  .max = sizeof(server_options.listen) },
	{ "memory", "SIZE", "how much to lend in all", cli_set_size,
	  &server_options.memory_bytes, .min = 64 << 10, .max = 1ull << 46 },
	{ "slab", "SIZE", "how much to lend at once; a power of two, 64M\n"
			  "unless given",
	  cli_set_size, &server_options.slab_bytes, .min = 64 << 10,
	  .max = 1 << 30 },
	{ "quota", "SIZE", "most that one client gets; all unless given",
	  cli_set_size, &server_options.quota_bytes, .min = 64 << 10,
	  .max = 1ull << 46 },
	CLI_REACH_FABRIC(server_options,
			 "auto takes an RDMA device where there is one,\n"
			 "else the software device; a named one never\n"
			 "falls back"),
	{ "device", "NAME[:PORT]", "verbs: the device, such as mlx5_0:1",
	  cli_set_text, server_options.device,
	  .max = sizeof(server_options.device) },
	CLI_REACH_SECRET(server_options, "the clients"),
	{ "lease", "MS", "a silent client loses its slabs after this; 60000\n"
			"unless given",
	  cli_set_number, &server_options.lease_ms, .min = LEASE_MS_MIN,
	  .max = 3600000 },
	{ "clients", "N", "clients at a time; 1024 unless given, or what\n"
			 "the device has room for",
	  cli_set_number, &server_options.clients_max, .min = 1,
	  .max = 16384 },
	{ "overcommit", NULL,
	  "serve even if --memory is more than there is", cli_set_flag,
	  .field = &server_options.overcommit },
	{ "small-pages", NULL,
	  "leave huge pages of 2 MiB alone, if the system has some",
	  cli_set_flag, .field = &server_options.small_pages },
	{ "metrics", "ADDR:PORT", "Prometheus metrics at /metrics",
	  cli_set_text, metrics_at, .max = sizeof(metrics_at) },
	{ "drain-timeout", "S", "how long SIGTERM waits for clients to leave; 30\n"
			       "unless given",
	  cli_set_seconds, &drain_timeout_s, .min = 0, .max = 86400 },
};

static const struct cli_command command = {
	.name = "serve",
	.purpose = "Lends this machine's memory to clients.",
	.usage = "--listen ADDR:PORT --memory SIZE [--slab SIZE]\n"
		 "                     [--fabric auto|verbs|soft|soft:tcp] "
		 "[--device NAME[:PORT]]\n"
		 "                     [--secret-file F | --insecure] "
		 "[--quota SIZE] [--lease MS]\n"
		 "                     [--clients N] [--metrics ADDR:PORT] "
		 "[--drain-timeout S]\n"
		 "                     [--overcommit] [--small-pages]",
	.notes = "SIZE takes the suffixes K, M, G and T (1024). A line that "
		 "starts with `ready ADDR:PORT`\nsays that it serves. SIGTERM "
		 "and SIGINT let clients move away and stop; a second one\n"
		 "stops at once.",
	.options = options,
	.options_count = sizeof(options) / sizeof(options[0]),
};

/* What needs no server to be seen wrong. Returns 0 or an exit code. */
static int check_options(void)
{
	if (!*server_options.listen)
		return cli_fail(&command, "no address; add --listen ADDR:PORT");
	if (!server_options.memory_bytes)
		return cli_fail(&command, "no memory; add --memory SIZE");
	if (server_options.slab_bytes & (server_options.slab_bytes - 1))
		return cli_fail(&command, "--slab %" PRIu64
				" is not a power of two; give one from 64K "
				"to 1G", server_options.slab_bytes);
	if (server_options.slab_bytes > server_options.memory_bytes)
		return cli_fail(&command,
				"a slab of %" PRIu64 " bytes does not fit into "
				"%" PRIu64 " bytes of memory; lower --slab or "
				"raise --memory",
				server_options.slab_bytes,
				server_options.memory_bytes);
	return cli_reach_check(&command, server_options.secret_file,
			       server_options.insecure);
}

/* False: nobody can learn that, or where, it serves. */
static bool print_ready(const struct rbx_server *server,
			const struct metrics *metrics)
{
	char memory[32], slab[32];

	printf("ready %s lending %s in slabs of %s, %s%s%s\n",
	       rbx_server_address(server),
	       cli_size_print(server_options.memory_bytes, memory,
			      sizeof(memory)),
	       cli_size_print(server_options.slab_bytes, slab, sizeof(slab)),
	       rbx_server_describe(server),
	       metrics ? ", metrics at " : "",
	       metrics ? metrics_address(metrics) : "");
	return !fflush(stdout);
}

static void stop_at_once(int signal_number)
{
	(void)signal_number;
	_exit(CLI_EXIT_OK);
}

/* Unless it would wait: who read stderr may have stopped to. */
static void __attribute__((format(printf, 1, 2))) tell(const char *format, ...)
{
	struct pollfd out = { .fd = STDERR_FILENO, .events = POLLOUT };
	va_list args;

	if (poll(&out, 1, 0) != 1 || !(out.revents & POLLOUT))
		return;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
}

static void drain(struct rbx_server *server, const sigset_t *signals)
{
	struct sigaction action = { .sa_handler = stop_at_once };
	struct rbx_server_stats stats = { .size_bytes = sizeof(stats) };

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	pthread_sigmask(SIG_UNBLOCK, signals, NULL);
	tell("rdmabox serve: draining for at most %g s\n", drain_timeout_s);
	if (!rbx_server_drain(server, drain_timeout_s * 1000))
		return;
	rbx_server_stats_get(server, &stats);
	tell("rdmabox serve: %" PRIu64 " slabs are still lent after %g s "
	     "and are given up; a longer --drain-timeout waits for them\n",
	     stats.slabs_lent, drain_timeout_s);
}

static int serve(const sigset_t *signals)
{
	struct metrics *metrics = NULL;
	struct rbx_server *server;
	int rc, signal_number;

	if (rbx_server_start(&server, &server_options))
		return cli_fail(&command, "%s", rbx_last_error());
	if (*metrics_at) {
		rc = metrics_start(&metrics, metrics_at, server);
		if (rc) {
			rbx_server_stop(server);
			return cli_fail(&command, "cannot serve metrics at %s: "
					"%s; give a free ADDR:PORT, ADDR as a "
					"number", metrics_at,
					rc == -EINVAL ? "it is no address" :
							strerror(-rc));
		}
	}
	if (print_ready(server, metrics)) {
		sigwait(signals, &signal_number);
		drain(server, signals);
		rc = CLI_EXIT_OK;
	} else {
		cli_fail(&command, "cannot write the ready line to stdout: %s",
			 strerror(errno));
		rc = CLI_EXIT_FAILED;
	}
	metrics_stop(metrics);
	rbx_server_stop(server);
	return rc;
}

int cli_serve(int argc, char **argv)
{
	sigset_t signals;
	int rc;

	rbx_server_options_defaults(&server_options);
	/* Where, and how much: nobody but the user can know. */
	server_options.listen[0] = 0;
	server_options.memory_bytes = 0;
	rc = cli_parse(&command, argc, argv);
	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	rc = check_options();
	if (rc)
		return rc;
	/* Who reads stdout and stderr may leave, and the server stays. */
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	return serve(&signals);
}
