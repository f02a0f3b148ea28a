/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * http.c - the listener of `rdmabox serve --metrics`.
 *
 * libmicrohttpd listens and speaks HTTP; this file knows what is at which path, makes it
 * from one look at the server, and says how a browser may treat it. An answer stands for
 * KEEP_MS: a look takes the server's lock, so anybody who asks all the time would hold up
 * its clients.
 * Nothing can be changed over this port: GET and HEAD are all that is answered. Nothing
 * that a client stored can be seen through it, but the addresses of clients can: so it is
 * bound to the address that was given, and to no other.
 *
 * A connection for which there is no descriptor stays where it is. libmicrohttpd tries
 * again at once if it has no other, and again, but says so to its log each time: there
 * a pause is made.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#include <microhttpd.h>

#include "core/host_port.h"
#include "cli/serve/http.h"
#include "cli/serve/metrics.h"
#include "cli/serve/metrics_room.h"
#include "cli/serve/status.h"

/* Those in the room, and some that are shut down and not closed yet. */
#define CONNECTIONS_MAX (METRICS_CONNECTIONS_MAX + 16)
#define IDLE_TIMEOUT_S 10
#define KEEP_MS 500
#define PAUSE_MS 100

enum { PAGE_METRICS, PAGE_STATUS, PAGE_HTML, PAGES_COUNT };

struct http {
	struct MHD_Daemon *daemon;
	struct rbx_server *server;
	struct metrics_room room;
	/* What was answered last, of the one thread of libmicrohttpd. */
	struct kept {
		struct MHD_Response *response; /* NULL: none */
		uint64_t made_ms;
	} kept[PAGES_COUNT];
	char address[160];
};

/* ---- What there is ---------------------------------------------------------*/

/* Each returns text that the caller frees, or NULL. */

static char *make_metrics(struct rbx_server *server, size_t *len)
{
	char *page = NULL;
	FILE *text = open_memstream(&page, len);

	if (!text)
		return NULL;
	metrics_print(text, server);
	if (!fclose(text))
		return page;
	free(page);
	return NULL;
}

static char *make_status(struct rbx_server *server, size_t *len)
{
	json_t *json = status_json(server);
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

	*len = text ? strlen(text) : 0;
	json_decref(json);
	return text;
}

static const struct page {
	const char *path;
	const char *type;
	const char *policy; /* Content-Security-Policy */
	char *(*make)(struct rbx_server *server, size_t *len); /* NULL: status.html */
} pages[PAGES_COUNT] = {
	[PAGE_METRICS] = { "/metrics", "text/plain; version=0.0.4; charset=utf-8",
			   "default-src 'none'", make_metrics },
	[PAGE_STATUS] = { "/status.json", "application/json",
			  "default-src 'none'", make_status },
	[PAGE_HTML] = { "/", "text/html; charset=utf-8", status_page_policy,
			NULL },
};

static const struct page text_page = { "", "text/plain; charset=utf-8",
				       "default-src 'none'", NULL };

/* ---- Answers ---------------------------------------------------------------*/

/* NULL: no memory. The text is the response's, or freed, if the mode says so. */
static struct MHD_Response *make_response(unsigned int status,
					  const struct page *page,
					  const char *text, size_t len,
					  enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(len, (void *)text, mode);

	if (!response) {
		if (mode == MHD_RESPMEM_MUST_FREE)
			free((void *)text);
		return NULL;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
				page->type);
	MHD_add_response_header(response, "Content-Security-Policy",
				page->policy);
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
				"no-store");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW,
					"GET, HEAD");
	return response;
}

static enum MHD_Result refuse(struct MHD_Connection *connection,
			      unsigned int status, const char *text)
{
	struct MHD_Response *response =
		make_response(status, &text_page, text, strlen(text),
			      MHD_RESPMEM_PERSISTENT);
	enum MHD_Result queued;

	if (!response)
		return MHD_NO;
	queued = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return queued;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct MHD_Response *make_page(struct http *http, unsigned int number)
{
	const struct page *page = &pages[number];
	size_t len;
	char *text;

	if (!page->make)
		return make_response(MHD_HTTP_OK, page, status_page,
				     status_page_bytes, MHD_RESPMEM_PERSISTENT);
	text = page->make(http->server, &len);
	return text ? make_response(MHD_HTTP_OK, page, text, len,
				    MHD_RESPMEM_MUST_FREE) :
		      NULL;
}

/* Connections that still send the response from before keep it alive. */
static enum MHD_Result respond(struct http *http,
			       struct MHD_Connection *connection,
			       unsigned int number)
{
	struct kept *kept = &http->kept[number];
	uint64_t now = now_ms();

	if (kept->response && now - kept->made_ms >= KEEP_MS) {
		MHD_destroy_response(kept->response);
		kept->response = NULL;
	}
	if (!kept->response) {
		kept->response = make_page(http, number);
		kept->made_ms = now;
	}
	return kept->response ? MHD_queue_response(connection, MHD_HTTP_OK,
						   kept->response) :
				MHD_NO;
}

/*
 * A name that is not localhost may be one whose owner has pointed it to this address, so
 * that his page, open in a browser that reaches us, may read ours (DNS rebinding). Nobody
 * owns a number.
 */
static bool host_is_ours(struct MHD_Connection *connection)
{
	const char *value = MHD_lookup_connection_value(
		connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
	struct in6_addr number;
	char host[64];
	size_t length;

	if (!value) /* HTTP/1.0: no browser */
		return true;
	if (*value == '[') {
		value++;
		length = strcspn(value, "]");
	} else {
		length = strcspn(value, ":");
	}
	if (length >= sizeof(host))
		return false;
	memcpy(host, value, length);
	host[length] = '\0';
	return !strcasecmp(host, "localhost") ||
	       inet_pton(AF_INET, host, &number) == 1 ||
	       inet_pton(AF_INET6, host, &number) == 1;
}

static enum MHD_Result answer(void *user, struct MHD_Connection *connection,
			      const char *url, const char *method,
			      const char *version, const char *upload,
			      size_t *upload_bytes, void **state)
{
	struct http *http = user;

	(void)version, (void)upload, (void)upload_bytes, (void)state;
	if (!host_is_ours(connection))
		return refuse(connection, MHD_HTTP_MISDIRECTED_REQUEST,
			      "use a numeric address, or localhost\n");
	if (strcmp(method, MHD_HTTP_METHOD_GET) &&
	    strcmp(method, MHD_HTTP_METHOD_HEAD))
		return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
			      "GET and HEAD only\n");
	for (unsigned int i = 0; i < PAGES_COUNT; i++)
		if (!strcmp(url, pages[i].path))
			return respond(http, connection, i);
	return refuse(connection, MHD_HTTP_NOT_FOUND, "try / or /metrics\n");
}

static void pause_without_descriptors(void *user, const char *format, va_list args)
{
	int err = errno;

	(void)user, (void)format, (void)args;
	if (err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS)
		(void)poll(NULL, 0, PAUSE_MS);
	errno = err;
}

static void note_connection(void *user, struct MHD_Connection *connection,
			    void **state,
			    enum MHD_ConnectionNotificationCode what)
{
	struct http *http = user;
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	int fd = info->connect_fd;

	(void)state;
	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		metrics_room_leave(&http->room, fd);
		return;
	}
	info = MHD_get_connection_info(connection,
				       MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	metrics_room_enter(&http->room, fd, info->client_addr);
}

/* ---- Beginning and end -----------------------------------------------------*/

/* Resolves without a name server. No host, or "*", would be every address without a
 * word: 0.0.0.0 or [::] says so. */
static int resolve(const char *address, struct addrinfo **found)
{
	struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICHOST |
					      AI_NUMERICSERV,
				  .ai_socktype = SOCK_STREAM };
	struct rbx_host_port at;

	if (rbx_host_port_parse(address, true, &at) || !at.host[0] ||
	    !strcmp(at.host, "*"))
		return -EINVAL;
	return getaddrinfo(at.host, at.port, &hints, found) ? -EINVAL : 0;
}

static void note_address(struct http *http, const struct addrinfo *bound)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_BIND_PORT);
	char host[128] = "";

	getnameinfo(bound->ai_addr, bound->ai_addrlen, host, sizeof(host), NULL,
		    0, NI_NUMERICHOST);
	snprintf(http->address, sizeof(http->address),
		 bound->ai_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host,
		 info ? info->port : 0);
}

int http_start(struct http **http_out, const char *address,
	       struct rbx_server *server)
{
	/* Not select(), which knows 1,024 descriptors: slabs and clients have theirs. */
	unsigned int flags = MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD |
			     MHD_USE_ERROR_LOG;
	struct addrinfo *found;
	struct http *http;
	int err;

	err = resolve(address, &found);
	if (err)
		return err;
	err = -ENOMEM;
	http = calloc(1, sizeof(*http));
	if (!http)
		goto out_free_address;
	http->server = server;
	if (found->ai_family == AF_INET6)
		flags |= MHD_USE_IPv6;
	errno = 0;
	http->daemon = MHD_start_daemon(
		flags, 0, NULL, NULL, answer, http, MHD_OPTION_EXTERNAL_LOGGER,
		pause_without_descriptors, NULL, MHD_OPTION_SOCK_ADDR,
		found->ai_addr, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, IDLE_TIMEOUT_S,
		MHD_OPTION_NOTIFY_CONNECTION, note_connection, http,
		MHD_OPTION_END);
	if (!http->daemon) {
		err = errno ? -errno : -EADDRINUSE;
		goto out_free_http;
	}
	note_address(http, found);
	freeaddrinfo(found);
	*http_out = http;
	return 0;

out_free_http:
	free(http);
out_free_address:
	freeaddrinfo(found);
	return err;
}

const char *http_address(const struct http *http)
{
	return http->address;
}

void http_stop(struct http *http)
{
	if (!http)
		return;
	MHD_stop_daemon(http->daemon);
	for (unsigned int i = 0; i < PAGES_COUNT; i++)
		if (http->kept[i].response)
			MHD_destroy_response(http->kept[i].response);
	free(http);
}
