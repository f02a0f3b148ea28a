/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fake_etcd.h - an endpoint of etcd on loopback that answers as a test says.
 *
 * It speaks as much HTTP as is needed: a request, an answer, the end of the connection. The
 * script is called by the thread of a connection, for each request.
 */
#ifndef TEST_FAKE_ETCD_H
#define TEST_FAKE_ETCD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct fake_request {
	int fd;
	char path[128];
	char token[128]; /* of the header Authorization, or "" */
	char body[4096];
};

struct fake_etcd;
typedef void fake_script(struct fake_etcd *etcd, const struct fake_request *request);

struct fake_etcd *fake_etcd_start(fake_script *script);
/* The same port again. */
struct fake_etcd *fake_etcd_start_at(const char *address, fake_script *script);
/* Ends all connections too. */
void fake_etcd_stop(struct fake_etcd *etcd);
const char *fake_etcd_address(const struct fake_etcd *etcd);
/* How many requests with this path have come. */
uint32_t fake_etcd_count(struct fake_etcd *etcd, const char *path);
/* Waits until there are so many. */
void fake_etcd_await(struct fake_etcd *etcd, const char *path, uint32_t count);

/* For scripts. The connection ends when the script returns. */
void fake_say(const struct fake_request *request, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A whole answer. */
void fake_answer(const struct fake_request *request, const char *status, const char *json);
/* The beginning of a stream; then lines by fake_say(). */
void fake_stream(const struct fake_request *request);
/* Waits until the test has stopped the endpoint or the client has left. */
void fake_hang(const struct fake_request *request);

/* {"header":...,"kvs":[...]} of entries "key=value"; NULL at the end. The caller frees it. */
char *fake_range(uint64_t revision, ...);
/* A line of a watch: the key is put, or removed if the value is NULL. */
char *fake_event(uint64_t revision, const char *key, const char *value);

#endif
