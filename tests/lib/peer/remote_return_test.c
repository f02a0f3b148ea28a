/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remote_return_test.c - borrowed memory that is returned while the connection is
 * broken goes back when it is restored: the program has no other way to do it. But it
 * does not wait for ever for a server that is there.
 */
#include "tests/lib/tenant.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/port.h"
#include "tests/lib/cable.h"

static uint8_t page[4096];

/* Atomic. While it is set no server empties memory. */
static bool is_emptying_held;

/* Stands in for the C library's. */
int fallocate(int fd, int mode, off_t offset, off_t length)
{
	while (mode & FALLOC_FL_PUNCH_HOLE &&
	       RBX_LOAD_ACQUIRE(&is_emptying_held))
		usleep(1000);
	return (int)syscall(SYS_fallocate, fd, mode, offset, length);
}

static uint64_t slabs_lent(struct rbx_server *server)
{
	struct rbx_server_stats stats;

	rbx_server_stats_get(server, &stats);
	return stats.slabs_lent;
}

static void *give_back(void *remote)
{
	return rbx_return(remote) ? remote : NULL;
}

static void memory_returned_in_a_break_goes_back_after_it(void **state)
{
	struct rbx_server *server = tenant_server();
	struct cable *cable = cable_lay(rbx_server_address(server));
	struct rbx_remote *second;
	struct tenant tenant;
	pthread_t thread;
	void *result;

	(void)state;
	tenant_open_at(&tenant, cable_address(cable), "peer_timeout_ms=2000");
	assert_int_equal(rbx_borrow(tenant.peer, &second, 4096), 0);
	assert_int_equal(slabs_lent(server), 2);
	cable_hold(cable, true);
	assert_int_equal(pthread_create(&thread, NULL, give_back, second), 0);
	usleep(100000);
	cable_cut(cable);
	cable_hold(cable, false);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_null(result);
	/* It is back, and works. */
	assert_int_equal(tenant_transfer(&tenant, RBX_WRITE, page, sizeof(page),
					 0),
			 0);
	assert_int_equal(slabs_lent(server), 1);
	tenant_close(&tenant);
	cable_remove(cable);
	assert_int_equal(rbx_server_stop(server), 0);
}

static void return_does_not_wait_for_ever_for_a_slow_server(void **state)
{
	struct rbx_server *server = tenant_server();
	struct rbx_remote *second;
	struct tenant tenant;

	(void)state;
	tenant_open_at(&tenant, rbx_server_address(server),
		       "peer_timeout_ms=500");
	assert_int_equal(rbx_borrow(tenant.peer, &second, 4096), 0);
	RBX_STORE_RELEASE(&is_emptying_held, true);
	assert_int_equal(rbx_return(second), 0); /* it returns at all */
	/* The server is there, and the peer goes on. */
	assert_int_equal(tenant_transfer(&tenant, RBX_WRITE, page, sizeof(page),
					 0),
			 0);
	RBX_STORE_RELEASE(&is_emptying_held, false);
	tenant_close(&tenant);
	assert_int_equal(slabs_lent(server), 0);
	assert_int_equal(rbx_server_stop(server), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_returned_in_a_break_goes_back_after_it),
		cmocka_unit_test(return_does_not_wait_for_ever_for_a_slow_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
