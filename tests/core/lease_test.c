/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lease_test.c - heartbeats, and when a server counts as lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/lease.h"

/* A timeout of 40 and a lease of 100: a heartbeat each 10. */
static struct rbx_lease lease_at(uint64_t now_ns)
{
	struct rbx_lease lease = { .timeout_ns = 40, .lease_ns = 100 };

	rbx_lease_begin(&lease, now_ns, now_ns);
	return lease;
}

static void lease_quiet_for_a_quarter_sends_a_heartbeat(void **state)
{
	struct rbx_lease lease = lease_at(1000);
	uint64_t at_ns;

	(void)state;
	assert_int_equal(rbx_lease_next(&lease, 1009, &at_ns), RBX_LEASE_WAIT);
	assert_int_equal(at_ns, 1010);
	assert_int_equal(rbx_lease_next(&lease, 1010, &at_ns),
			 RBX_LEASE_HEARTBEAT);
	lease.lease_ns = 20; /* the shorter of both counts */
	assert_int_equal(rbx_lease_next(&lease, 1005, &at_ns),
			 RBX_LEASE_HEARTBEAT);
}

static void lease_silence_with_a_heartbeat_out_loses_the_server(void **state)
{
	struct rbx_lease lease = lease_at(1000);
	uint64_t at_ns;

	(void)state;
	lease.heartbeat_ns = 1010;
	lease.heartbeat_is_out = true;
	assert_int_equal(rbx_lease_next(&lease, 1039, &at_ns), RBX_LEASE_WAIT);
	assert_int_equal(rbx_lease_next(&lease, 1040, &at_ns),
			 RBX_LEASE_SILENT);
	lease.heard_ns = 1001;
	assert_int_equal(rbx_lease_next(&lease, 1040, &at_ns), RBX_LEASE_WAIT);
	/* Who was asked just now has had no time to answer. */
	lease.heard_ns = 1000;
	lease.heartbeat_ns = 1035;
	assert_int_equal(rbx_lease_next(&lease, 1044, &at_ns), RBX_LEASE_WAIT);
	assert_int_equal(rbx_lease_next(&lease, 1045, &at_ns),
			 RBX_LEASE_SILENT);
}

static void lease_is_over_half_the_term_after_what_was_answered(void **state)
{
	struct rbx_lease lease = lease_at(1000);
	uint64_t at_ns;

	(void)state;
	/* Heard of all the time, but never in answer to anything sent since. */
	lease.heard_ns = 1049;
	lease.heartbeat_ns = 1049;
	assert_int_equal(rbx_lease_next(&lease, 1049, &at_ns), RBX_LEASE_WAIT);
	assert_int_equal(rbx_lease_next(&lease, 1050, &at_ns), RBX_LEASE_OVER);
	rbx_lease_answered(&lease, 1020);
	assert_int_equal(rbx_lease_next(&lease, 1050, &at_ns), RBX_LEASE_WAIT);
	rbx_lease_answered(&lease, 1010); /* an older one changes nothing */
	assert_int_equal(rbx_lease_next(&lease, 1069, &at_ns),
			 RBX_LEASE_HEARTBEAT);
	assert_int_equal(rbx_lease_next(&lease, 1070, &at_ns), RBX_LEASE_OVER);
}

static void lease_what_came_after_the_clock_was_read_came_just_now(void **state)
{
	struct rbx_lease lease = lease_at(1000);
	uint64_t at_ns;

	(void)state;
	lease.heard_ns = 1005;
	lease.heartbeat_ns = 1005;
	lease.answered_ns = 1005;
	assert_int_equal(rbx_lease_next(&lease, 1000, &at_ns), RBX_LEASE_WAIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lease_quiet_for_a_quarter_sends_a_heartbeat),
		cmocka_unit_test(
			lease_silence_with_a_heartbeat_out_loses_the_server),
		cmocka_unit_test(
			lease_is_over_half_the_term_after_what_was_answered),
		cmocka_unit_test(
			lease_what_came_after_the_clock_was_read_came_just_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
