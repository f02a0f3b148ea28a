/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* resolve_test.c - a session looks names up when it is opened, and never again. */
#include <arpa/inet.h>
#include <dlfcn.h>
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

static int lookups_count;

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

	lookups_count += host && !is_number(host);
	return real(host, port, hints, found);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(session_that_is_resumed_looks_up_no_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
