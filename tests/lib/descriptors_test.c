/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * descriptors_test.c - a connection breaks while the program may open no descriptor:
 * that is no reason to give a server up that is well.
 */
#include "tests/lib/server_process.h"
#include "tests/lib/tenant.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAGE 4096u
#define TIMEOUT_MS 2000u
#define DESCRIPTORS_MAX 256

/*
 * Ends what this process has to a port; how many that were. The library may see the
 * first one end and close the others itself.
 */
static int cut_all_to(uint16_t port)
{
	int fd, count = 0;

	for (fd = 0; fd < DESCRIPTORS_MAX; fd++) {
		struct sockaddr_in peer;
		socklen_t length = sizeof(peer);

		if (getpeername(fd, (struct sockaddr *)&peer, &length) ||
		    peer.sin_family != AF_INET || ntohs(peer.sin_port) != port)
			continue;
		shutdown(fd, SHUT_RDWR);
		count++;
	}
	return count;
}

static void server_is_not_given_up_for_want_of_descriptors(void **state)
{
	struct rlimit limit, none;
	struct server_process server;
	struct tenant tenant;
	struct rbx_options options;
	uint8_t page[PAGE], back[PAGE];
	struct rbx_request write = {
		.op = RBX_WRITE, .buf = page, .length_bytes = PAGE
	};

	(void)state;
	server_process_start(&server, "127.0.0.1:0", NULL);
	tenant_options(&options);
	options.peer_timeout_ms = TIMEOUT_MS;
	tenant.server = NULL;
	assert_int_equal(rbx_open(&tenant.ctx, &options), 0);
	assert_int_equal(rbx_peer_connect(tenant.ctx, &tenant.peer,
					  server.address), 0);
	assert_int_equal(rbx_borrow(tenant.peer, &tenant.remote,
				    TENANT_SLAB_BYTES), 0);
	tenant_fill(page, PAGE, 7);

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_not_equal(
		cut_all_to((uint16_t)atoi(strrchr(server.address, ':') + 1)), 0);
	tenant_submit(&tenant, &write);
	usleep(TIMEOUT_MS * 1000);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	tenant_reap(tenant.ctx, 1);
	assert_int_equal(tenant_transfer(&tenant, RBX_READ, back, PAGE, 0), 0);
	assert_memory_equal(back, page, PAGE);
	tenant_close(&tenant);
	server_process_kill(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_is_not_given_up_for_want_of_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
