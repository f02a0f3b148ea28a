/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * resolve_test.c - a session looks names up when it is opened, and never again; and what
 * a resolver says to one call it need not say to the next: without a secret the address
 * decides that is connected to, or listened on.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/clock.h"
#include "tests/server/world.h"

#define RESUME_MS 5000

#define CHANGING "changing.test" /* a name of the resolver below */

static int lookups_count;
/* What CHANGING is, from the first lookup on; the last one stays. "A,B" is both. */
static const char *answers[3];
static int answers_count; /* told so far */

static bool is_number(const char *host)
{
	struct in6_addr bytes;

	return inet_pton(AF_INET, host, &bytes) == 1 ||
	       inet_pton(AF_INET6, host, &bytes) == 1;
}

/* In place of libc's. */
int getaddrinfo(const char *host, const char *port,
		const struct addrinfo *hints, struct addrinfo **found)
{
	int (*real)(const char *, const char *, const struct addrinfo *,
		    struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");

	char first[INET6_ADDRSTRLEN];
	const char *comma;
	int rc;

	lookups_count += host && !is_number(host);
	if (!host || strcmp(host, CHANGING))
		return real(host, port, hints, found);
	host = answers[answers_count];
	answers_count += answers_count < 2;
	comma = strchr(host, ',');
	if (!comma)
		return real(host, port, hints, found);
	snprintf(first, sizeof(first), "%.*s", (int)(comma - host), host);
	rc = real(first, port, hints, found);
	return rc ? rc : real(comma + 1, port, hints, &(*found)->ai_next);
}

static void session_that_is_resumed_looks_up_no_name(void **state)
{
	const struct rbx_session_events events = { 0 };
	struct rbx_session *session;
	struct world world;
	struct rbx_qp *qp;
	char address[64];
	int count;

	(void)state;
	world_options(&world);
	strcpy(world.options.listen, "127.0.0.1:0");
	world_start(&world);
	snprintf(address, sizeof(address), "localhost%s",
		 strrchr(rbx_server_address(world.server), ':'));
	assert_int_equal(rbx_session_open_name(world.set, address, &events, &session),
			 0);
	count = lookups_count;
	assert_true(count > 0);
	assert_int_equal(rbx_session_resume(session, rbx_after_ms(RESUME_MS)), 0);
	qp = world_qp(&world, session);
	assert_int_equal(lookups_count, count);
	world.device->ops->destroy_qp(qp);
	rbx_session_close(session);
	world_stop(&world);
}

static void changing_is(const char *first, const char *second)
{
	answers[0] = first;
	answers[1] = answers[2] = second;
	answers_count = 0;
}

static void start_fails(struct rbx_server_options *options, const char *first,
			const char *second)
{
	struct rbx_server *server;

	changing_is(first, second);
	assert_int_equal(rbx_server_start(&server, options), -EPERM);
	assert_non_null(strstr(rbx_last_error(), "there is no secret"));
}

static void server_judges_the_address_that_it_has_bound(void **state)
{
	struct rbx_server_options options;
	struct rbx_server *server;

	(void)state;
	rbx_server_options_defaults(&options);
	strcpy(options.listen, CHANGING ":0");
	strcpy(options.fabric, "soft:tcp");
	options.memory_bytes = 16 << 20;
	options.slab_bytes = 1 << 20;
	start_fails(&options, "127.0.0.1", "0.0.0.0");
	start_fails(&options, "0.0.0.0", "127.0.0.1");
	changing_is("127.0.0.1", "127.0.0.1");
	assert_int_equal(rbx_server_start(&server, &options), 0);
	rbx_server_stop(server);
}

/* 127.0.0.1 mapped into IPv6 is loopback, and another address that is mapped is not. */
static void mapped_address_is_judged_as_what_is_mapped(void **state)
{
	struct rbx_sessions_options options = { .silence_ms = 5000 };
	const struct rbx_session_events events = { 0 };
	struct rbx_session *session;
	struct rbx_sessions *set;
	struct rbx_server *server;
	struct world world;

	(void)state;
	world_options(&world);
	world.options.insecure = 0;
	strcpy(world.options.fabric, "soft:tcp");
	strcpy(world.options.listen, "[::ffff:0.0.0.0]:0");
	assert_int_equal(rbx_server_start(&server, &world.options), -EPERM);
	strcpy(world.options.listen, "[::ffff:127.0.0.1]:0");
	world_start(&world);
	options.device = world.device;
	assert_int_equal(rbx_sessions_open(&set, &options), 0);
	assert_int_equal(rbx_session_open_name(set, rbx_server_address(world.server), &events,
					       &session),
			 0);
	rbx_session_close(session);
	assert_int_equal(rbx_session_open_name(set, "[::ffff:192.0.2.1]:7471", &events,
					       &session),
			 -EPERM);
	rbx_sessions_close(set);
	world_stop(&world);
}

static int open_changing(struct rbx_sessions *set, const char *port,
			 const char *first, const char *second)
{
	const struct rbx_session_events events = { 0 };
	struct rbx_session *session;
	char address[64];
	int err;

	changing_is(first, second);
	snprintf(address, sizeof(address), CHANGING "%s", port);
	err = rbx_session_open_name(set, address, &events, &session);
	if (!err)
		rbx_session_close(session);
	return err;
}

/* 0.0.0.0 leads to this machine, and is none of loopback. */
static void session_judges_the_address_that_it_connects_to(void **state)
{
	struct rbx_sessions_options options = { .silence_ms = 5000 };
	struct rbx_secret *secret;
	struct rbx_sessions *set;
	struct world world;
	const char *port;

	(void)state;
	world_options(&world);
	strcpy(world.options.listen, "0.0.0.0:0");
	world.options.insecure = 1;
	world_start(&world);
	options.device = world.device;
	assert_int_equal(rbx_sessions_open(&set, &options), 0);
	port = strrchr(rbx_server_address(world.server), ':');
	assert_int_equal(open_changing(set, port, "127.0.0.1", "127.0.0.1"), 0);
	assert_int_equal(open_changing(set, port, "0.0.0.0", "127.0.0.1"), -EPERM);
	assert_non_null(strstr(rbx_last_error(), CHANGING));
	assert_non_null(strstr(rbx_last_error(), "there is no secret"));
	/* It is asked once, so that there is nothing to change. */
	assert_int_equal(open_changing(set, port, "127.0.0.1", "0.0.0.0"), 0);
	assert_int_equal(answers_count, 1);
	/* Any of them may be the one that it gets. */
	assert_int_equal(open_changing(set, port, "127.0.0.1,0.0.0.0", "127.0.0.1"), -EPERM);
	assert_int_equal(open_changing(set, port, "0.0.0.0,127.0.0.1", "127.0.0.1"), -EPERM);
	rbx_sessions_close(set);
	/* With either of these it may be any. This server has no secret. */
	options.insecure = true;
	assert_int_equal(rbx_sessions_open(&set, &options), 0);
	assert_int_equal(open_changing(set, port, "0.0.0.0", "0.0.0.0"), 0);
	rbx_sessions_close(set);
	options.insecure = false;
	assert_int_equal(rbx_secret_load(world_secret_file("that of the client alone\n", 0600),
					 &secret), 0);
	options.secret = secret;
	assert_int_equal(rbx_sessions_open(&set, &options), 0);
	assert_int_equal(open_changing(set, port, "0.0.0.0", "0.0.0.0"), -EACCES);
	rbx_sessions_close(set);
	rbx_secret_free(secret);
	world_stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(session_that_is_resumed_looks_up_no_name),
		cmocka_unit_test(server_judges_the_address_that_it_has_bound),
		cmocka_unit_test(mapped_address_is_judged_as_what_is_mapped),
		cmocka_unit_test(session_judges_the_address_that_it_connects_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
