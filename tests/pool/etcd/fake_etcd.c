/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fake_etcd.c - an endpoint of etcd that answers as a test says, see fake_etcd.h. */
#include "tests/pool/etcd/fake_etcd.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pool/etcd/answer.h"

#define CONNECTIONS_MAX 256
#define REQUESTS_MAX 4096

struct fake_etcd {
	fake_script *script;
	int listen_fd;
	char address[32];
	pthread_t thread;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t more;
	char paths[REQUESTS_MAX][40];
	uint32_t paths_count;
	struct connection {
		struct fake_etcd *etcd;
		int fd;
		pthread_t thread;
	} connections[CONNECTIONS_MAX];
	uint32_t connections_count;
};

/* ---- Answers ------------------------------------------------------------------------*/

static void bytes_send(int fd, const char *bytes, size_t length)
{
	while (length) {
		ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);

		if (sent <= 0)
			return; /* the client has left */
		bytes += sent;
		length -= (size_t)sent;
	}
}

void fake_say(const struct fake_request *request, const char *format, ...)
{
	va_list args;
	char *text;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	bytes_send(request->fd, text, (size_t)length);
	free(text);
}

void fake_answer(const struct fake_request *request, const char *status, const char *json)
{
	fake_say(request, "HTTP/1.1 %s\r\nContent-Type: application/json\r\n"
			  "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
		 status, strlen(json), json);
}

void fake_stream(const struct fake_request *request)
{
	fake_say(request, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
			  "{\"result\":{\"header\":{\"revision\":\"1\"},\"created\":true}}\n");
}

void fake_hang(const struct fake_request *request)
{
	struct pollfd fd = { .fd = request->fd, .events = POLLIN | POLLRDHUP };

	(void)poll(&fd, 1, -1);
}

static char *kv_text(uint64_t revision, const char *key, const char *value)
{
	char *key64 = etcd_base64(key, strlen(key)), *text;
	char *value64 = etcd_base64(value ? value : "", value ? strlen(value) : 0);

	assert_true(asprintf(&text, "{\"key\":\"%s\",\"mod_revision\":\"%lu\",\"value\":\"%s\"}", key64,
			     revision, value64) > 0);
	free(value64);
	free(key64);
	return text;
}

char *fake_range(uint64_t revision, ...)
{
	char *json, *longer, *kv;
	const char *entry;
	va_list entries;

	assert_true(asprintf(&json, "{\"header\":{\"revision\":\"%lu\"},\"kvs\":[", revision) > 0);
	va_start(entries, revision);
	while ((entry = va_arg(entries, const char *))) {
		char *key = strdup(entry), *value = strchr(key, '=');

		*value++ = '\0';
		kv = kv_text(revision, key, value);
		assert_true(asprintf(&longer, "%s%s%s", json,
				     json[strlen(json) - 1] == '[' ? "" : ",", kv) > 0);
		free(kv);
		free(key);
		free(json);
		json = longer;
	}
	va_end(entries);
	assert_true(asprintf(&longer, "%s]}", json) > 0);
	free(json);
	return longer;
}

char *fake_event(uint64_t revision, const char *key, const char *value)
{
	char *kv = kv_text(revision, key, value), *line;

	assert_true(asprintf(&line, "{\"result\":{\"header\":{\"revision\":\"%lu\"},\"events\":[{%s\"kv\":%s}]}}\n",
			     revision, value ? "" : "\"type\":\"DELETE\",", kv) > 0);
	free(kv);
	return line;
}

/* ---- Requests -----------------------------------------------------------------------*/

/* False: there was none. */
static bool request_read(int fd, struct fake_request *request)
{
	char text[8192], *body = NULL, *header;
	size_t length = 0, body_bytes = 0;
	ssize_t got;

	while (!body || text + length < body + body_bytes) {
		got = read(fd, text + length, sizeof(text) - 1 - length);
		if (got <= 0)
			return false;
		length += (size_t)got;
		text[length] = '\0';
		body = strstr(text, "\r\n\r\n");
		if (!body)
			continue;
		body += 4;
		header = strcasestr(text, "\r\nContent-Length: ");
		body_bytes = header ? strtoul(header + 18, NULL, 10) : 0;
	}
	*request = (struct fake_request){ .fd = fd };
	sscanf(text, "POST %127s", request->path);
	header = strcasestr(text, "\r\nAuthorization: ");
	if (header)
		sscanf(header + 17, "%127[^\r]", request->token);
	snprintf(request->body, sizeof(request->body), "%s", body);
	return true;
}

static void *connection_run(void *connection_pointer)
{
	struct connection *connection = connection_pointer;
	struct fake_etcd *etcd = connection->etcd;
	struct fake_request request;

	if (request_read(connection->fd, &request)) {
		pthread_mutex_lock(&etcd->lock);
		if (etcd->paths_count < REQUESTS_MAX)
			snprintf(etcd->paths[etcd->paths_count++], sizeof(etcd->paths[0]), "%.39s",
				 request.path);
		pthread_cond_broadcast(&etcd->more);
		pthread_mutex_unlock(&etcd->lock);
		etcd->script(etcd, &request);
	}
	shutdown(connection->fd, SHUT_RDWR);
	return NULL;
}

static void *etcd_run(void *etcd_pointer)
{
	struct fake_etcd *etcd = etcd_pointer;
	int fd;

	while ((fd = accept(etcd->listen_fd, NULL, NULL)) >= 0) {
		struct connection *connection = &etcd->connections[etcd->connections_count];

		assert_true(etcd->connections_count < CONNECTIONS_MAX);
		*connection = (struct connection){ .etcd = etcd, .fd = fd };
		pthread_create(&connection->thread, NULL, connection_run, connection);
		pthread_mutex_lock(&etcd->lock);
		etcd->connections_count++;
		pthread_mutex_unlock(&etcd->lock);
	}
	return NULL;
}

/* ---- For tests -----------------------------------------------------------------------*/

struct fake_etcd *fake_etcd_start_at(const char *address, fake_script *script)
{
	struct fake_etcd *etcd = calloc(1, sizeof(*etcd));
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t at_bytes = sizeof(at);
	int one = 1;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	at.sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1));
	etcd->script = script;
	etcd->listen_fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(etcd->listen_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	assert_int_equal(bind(etcd->listen_fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(etcd->listen_fd, 64), 0);
	getsockname(etcd->listen_fd, (struct sockaddr *)&at, &at_bytes);
	snprintf(etcd->address, sizeof(etcd->address), "127.0.0.1:%u", ntohs(at.sin_port));
	pthread_mutex_init(&etcd->lock, NULL);
	pthread_cond_init(&etcd->more, NULL);
	pthread_create(&etcd->thread, NULL, etcd_run, etcd);
	return etcd;
}

struct fake_etcd *fake_etcd_start(fake_script *script)
{
	return fake_etcd_start_at("127.0.0.1:0", script);
}

void fake_etcd_stop(struct fake_etcd *etcd)
{
	uint32_t i;

	shutdown(etcd->listen_fd, SHUT_RDWR);
	pthread_join(etcd->thread, NULL);
	close(etcd->listen_fd);
	for (i = 0; i < etcd->connections_count; i++)
		shutdown(etcd->connections[i].fd, SHUT_RDWR);
	for (i = 0; i < etcd->connections_count; i++) {
		pthread_join(etcd->connections[i].thread, NULL);
		close(etcd->connections[i].fd);
	}
	free(etcd);
}

const char *fake_etcd_address(const struct fake_etcd *etcd)
{
	return etcd->address;
}

static uint32_t count_locked(const struct fake_etcd *etcd, const char *path)
{
	uint32_t i, count = 0;

	for (i = 0; i < etcd->paths_count; i++)
		count += !strcmp(etcd->paths[i], path);
	return count;
}

uint32_t fake_etcd_count(struct fake_etcd *etcd, const char *path)
{
	uint32_t count;

	pthread_mutex_lock(&etcd->lock);
	count = count_locked(etcd, path);
	pthread_mutex_unlock(&etcd->lock);
	return count;
}

void fake_etcd_await(struct fake_etcd *etcd, const char *path, uint32_t count)
{
	pthread_mutex_lock(&etcd->lock);
	while (count_locked(etcd, path) < count)
		pthread_cond_wait(&etcd->more, &etcd->lock);
	pthread_mutex_unlock(&etcd->lock);
}
