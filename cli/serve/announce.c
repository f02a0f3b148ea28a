/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * announce.c - makes the server a member of a pool.
 *
 * A thread looks once a second at the numbers of the server and gives them to the library,
 * which writes the entry and keeps it alive. It tells on stderr when that does not work, and
 * when it does again. Serving waits for none of it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <poll.h>
#include <unistd.h>

#include <rdmabox/rdmabox.h>

#include "cli/serve/serve.h"
#include "core/host_port.h"

#define LOOK_EVERY_MS 1000

struct announce {
	struct rbx_server *server;
	struct rbx_announcement *announcement;
	struct rbx_pool_member member;
	int stop_fd; /* readable: the thread is to end */
	pthread_t thread;
	bool has_trouble; /* that was told */
};

/* ---- The address ----------------------------------------------------------------------*/

static bool is_every_address(const char *host)
{
	return !*host || !strcmp(host, "0.0.0.0") || !strcmp(host, "::");
}

/* The address as it was given or bound, with the port that was taken for port 0. */
static int address_make(const struct rbx_server *server, char *address, size_t address_bytes)
{
	const char *bound = rbx_server_address(server), *given = serve_options.address;
	struct rbx_host_port at, bound_at;

	if (rbx_host_port_parse(*given ? given : bound, true, &at) ||
	    rbx_host_port_parse(bound, true, &bound_at))
		return cli_fail(&serve_command, "--address %s: give HOST:PORT", given);
	if (is_every_address(at.host))
		return cli_fail(&serve_command, "%s is every address of this machine; add --address "
				"HOST:PORT, where clients find it", *given ? given : bound);
	snprintf(address, address_bytes, strchr(at.host, ':') ? "[%s]:%s" : "%s:%s", at.host,
		 at.number ? at.port : bound_at.port);
	return 0;
}

/* ---- The thread ------------------------------------------------------------------------*/

static void numbers_take(struct announce *announce)
{
	struct rbx_server_stats stats;

	rbx_server_stats_get(announce->server, &stats);
	announce->member.memory_bytes = stats.memory_bytes;
	/* A limit that was lowered may be below what is lent. */
	announce->member.free_bytes = stats.lent_bytes < stats.memory_bytes ?
					      stats.memory_bytes - stats.lent_bytes :
					      0;
	announce->member.draining = stats.draining != 0;
}

static void trouble_tell(struct announce *announce)
{
	char text[512];
	bool has_trouble = rbx_announcement_trouble(announce->announcement, text, sizeof(text));

	if (has_trouble && !announce->has_trouble)
		serve_tell("rdmabox serve: not announced: %s; it is tried again\n", text);
	else if (!has_trouble && announce->has_trouble)
		serve_tell("rdmabox serve: announced in %s as %s\n", serve_options.announce_at,
			   announce->member.address);
	announce->has_trouble = has_trouble;
}

static void *announce_run(void *announce_pointer)
{
	struct announce *announce = announce_pointer;
	struct pollfd stop = { .fd = announce->stop_fd, .events = POLLIN };

	while (poll(&stop, 1, LOOK_EVERY_MS) <= 0) {
		numbers_take(announce);
		rbx_announcement_update(announce->announcement, &announce->member);
		trouble_tell(announce);
	}
	return NULL;
}

/* ---- Begin and end ----------------------------------------------------------------------*/

static int announce_begin(struct announce *announce)
{
	int rc = address_make(announce->server, announce->member.address,
			      sizeof(announce->member.address));

	if (rc)
		return rc;
	strcpy(announce->member.labels, serve_options.server.labels);
	announce->member.incarnation = rbx_server_incarnation(announce->server);
	numbers_take(announce);
	if (rbx_announcement_open(&announce->announcement, serve_options.announce_at,
				  &announce->member))
		return cli_fail(&serve_command, "--announce: %s", rbx_last_error());
	announce->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (announce->stop_fd < 0 ||
	    pthread_create(&announce->thread, NULL, announce_run, announce)) {
		rbx_announcement_close(announce->announcement);
		return cli_fail(&serve_command, "--announce: cannot start a thread: %s", strerror(errno));
	}
	return 0;
}

int serve_announce_start(struct announce **announce_out, struct rbx_server *server)
{
	struct announce *announce;
	int rc;

	if (!*serve_options.announce_at)
		return 0;
	announce = calloc(1, sizeof(*announce));
	if (!announce)
		return cli_fail(&serve_command, "out of memory");
	announce->server = server;
	rc = announce_begin(announce);
	if (rc)
		free(announce);
	else
		*announce_out = announce;
	return rc;
}

void serve_announce_stop(struct announce *announce)
{
	if (!announce)
		return;
	(void)eventfd_write(announce->stop_fd, 1);
	pthread_join(announce->thread, NULL);
	close(announce->stop_fd);
	rbx_announcement_close(announce->announcement);
	free(announce);
}
