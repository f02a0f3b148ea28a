/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Prometheus metrics of a memory server.
 *
 * libmicrohttpd listens and speaks HTTP; this file turns one snapshot of
 * rbx_server_stats_get() into text for each GET /metrics. A number that can
 * fall is a gauge and keeps its name; one that only grows is a counter and
 * ends in _total. Nothing can be changed over this port, and nothing that a
 * client stored can be seen through it.
 */
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <microhttpd.h>

#include "core/host_port.h"
#include "cli/serve/metrics.h"
#include "cli/serve/metrics_room.h"

/* Those in the room, and some that are shut down and not closed yet. */
#define CONNECTIONS_MAX (METRICS_CONNECTIONS_MAX + 16)
#define IDLE_TIMEOUT_S 10

struct metrics {
	struct MHD_Daemon *daemon;
	struct rbx_server *server;
	struct metrics_room room;
	char address[160];
};

static bool is_gauge(const char *name)
{
	static const char *const gauges[] = { "memory_bytes", "lent_bytes",
					      "slab_bytes",   "slabs_lent",
					      "clients",      "uptime_s" };

	for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++)
		if (!strcmp(gauges[i], name))
			return true;
	return false;
}

static void print_metric(FILE *text, const char *name, const char *what,
			 uint64_t value)
{
	bool gauge = is_gauge(name);
	const char *suffix = gauge ? "" : "_total";

	fprintf(text,
		"# HELP rdmabox_server_%s%s %s\n"
		"# TYPE rdmabox_server_%s%s %s\n"
		"rdmabox_server_%s%s %" PRIu64 "\n",
		name, suffix, what, name, suffix, gauge ? "gauge" : "counter",
		name, suffix, value);
}

/* Returns text that the caller frees, or NULL. */
static char *make_page(struct rbx_server *server, size_t *len)
{
	struct rbx_server_stats stats = { .size_bytes = sizeof(stats) };
	char *page = NULL;
	FILE *text = open_memstream(&page, len);

	if (!text)
		return NULL;
	rbx_server_stats_get(server, &stats);
#define PRINT(name, what) print_metric(text, #name, what, stats.name);
	RBX_SERVER_STATS(PRINT)
#undef PRINT
	if (!fclose(text))
		return page;
	free(page);
	return NULL;
}

static enum MHD_Result respond(struct MHD_Connection *connection,
			       unsigned int status, const char *type,
			       char *page, size_t len)
{
	struct MHD_Response *response;
	enum MHD_Result queued;

	response = MHD_create_response_from_buffer(len, page,
						   MHD_RESPMEM_MUST_COPY);
	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	queued = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return queued;
}

static enum MHD_Result answer(void *user, struct MHD_Connection *connection,
			      const char *url, const char *method,
			      const char *version, const char *upload,
			      size_t *upload_bytes, void **state)
{
	static char not_found[] = "try /metrics\n";
	struct metrics *metrics = user;
	enum MHD_Result queued;
	size_t len;
	char *page;

	(void)version, (void)upload, (void)upload_bytes, (void)state;
	if (strcmp(method, MHD_HTTP_METHOD_GET))
		return respond(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
			       "text/plain", not_found, strlen(not_found));
	if (strcmp(url, "/metrics"))
		return respond(connection, MHD_HTTP_NOT_FOUND, "text/plain",
			       not_found, strlen(not_found));
	page = make_page(metrics->server, &len);
	if (!page)
		return MHD_NO;
	queued = respond(connection, MHD_HTTP_OK,
			 "text/plain; version=0.0.4; charset=utf-8", page, len);
	free(page);
	return queued;
}

static void note_connection(void *user, struct MHD_Connection *connection,
			    void **state,
			    enum MHD_ConnectionNotificationCode what)
{
	struct metrics *metrics = user;
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	int fd = info->connect_fd;

	(void)state;
	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		metrics_room_leave(&metrics->room, fd);
		return;
	}
	info = MHD_get_connection_info(connection,
				       MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	metrics_room_enter(&metrics->room, fd, info->client_addr);
}

/* Resolves without a name server. */
static int resolve(const char *address, struct addrinfo **found)
{
	struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICHOST |
					      AI_NUMERICSERV,
				  .ai_socktype = SOCK_STREAM };
	struct rbx_host_port at;

	if (rbx_host_port_parse(address, true, &at) || !at.host[0])
		return -EINVAL;
	return getaddrinfo(at.host, at.port, &hints, found) ? -EINVAL : 0;
}

static void note_address(struct metrics *metrics, const struct addrinfo *bound)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(metrics->daemon, MHD_DAEMON_INFO_BIND_PORT);
	char host[128] = "";

	getnameinfo(bound->ai_addr, bound->ai_addrlen, host, sizeof(host), NULL,
		    0, NI_NUMERICHOST);
	snprintf(metrics->address, sizeof(metrics->address),
		 bound->ai_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host,
		 info ? info->port : 0);
}

int metrics_start(struct metrics **metrics_out, const char *address,
		  struct rbx_server *server)
{
	unsigned int flags = MHD_USE_INTERNAL_POLLING_THREAD;
	struct metrics *metrics;
	struct addrinfo *found;
	int err;

	err = resolve(address, &found);
	if (err)
		return err;
	err = -ENOMEM;
	metrics = calloc(1, sizeof(*metrics));
	if (!metrics)
		goto out_free_address;
	metrics->server = server;
	if (found->ai_family == AF_INET6)
		flags |= MHD_USE_IPv6;
	errno = 0;
	metrics->daemon = MHD_start_daemon(
		flags, 0, NULL, NULL, answer, metrics, MHD_OPTION_SOCK_ADDR,
		found->ai_addr, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, IDLE_TIMEOUT_S,
		MHD_OPTION_NOTIFY_CONNECTION, note_connection, metrics,
		MHD_OPTION_END);
	if (!metrics->daemon) {
		err = errno ? -errno : -EADDRINUSE;
		goto out_free_metrics;
	}
	note_address(metrics, found);
	freeaddrinfo(found);
	*metrics_out = metrics;
	return 0;

out_free_metrics:
	free(metrics);
out_free_address:
	freeaddrinfo(found);
	return err;
}

const char *metrics_address(const struct metrics *metrics)
{
	return metrics->address;
}

void metrics_stop(struct metrics *metrics)
{
	if (!metrics)
		return;
	MHD_stop_daemon(metrics->daemon);
	free(metrics);
}
