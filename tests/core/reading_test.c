/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reading_test.c - what a client that only reads a named volume may believe of what it hears.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/reading.h"

#define SERVERS 3u

static struct rbx_reading_server servers[SERVERS];
static struct rbx_reading reading;

/* All three are IN, and have told all at this time. */
static int begin(void **state)
{
	(void)state;
	reading = (struct rbx_reading){ .at_ns = 0 };
	for (uint32_t i = 0; i < SERVERS; i++) {
		servers[i] = (struct rbx_reading_server){
			.is_there = true,
			.incarnation = 11 + i,
			.seen_ns = 100 + i,
			.since_ns = 50,
			.all_ns = 100 + i,
			.copies = 2,
		};
		servers[i].membership = (struct rbx_membership){
			.epoch = 1,
			.version = 1,
			.count = SERVERS,
			.members = { { 11, RBX_MEMBER_IN, true },
				     { 12, RBX_MEMBER_IN, true },
				     { 13, RBX_MEMBER_IN, true } },
		};
	}
	rbx_reading_judge(&reading, servers, SERVERS, 0, 90);
	return 0;
}

static void judge(uint64_t now_ns)
{
	rbx_reading_judge(&reading, servers, SERVERS, 0, now_ns);
}

static uint64_t at(uint32_t server)
{
	return rbx_reading_server_at(&reading, &servers[server]);
}

/* They have told all once more. */
static void all_tell(uint64_t now_ns)
{
	for (uint32_t i = 0; i < SERVERS; i++)
		servers[i].seen_ns = servers[i].all_ns = now_ns;
}

/* A record in which server 0 is OUT. */
static void put_out(uint32_t server)
{
	servers[server].membership.version = 2;
	servers[server].membership.members[0].state = RBX_MEMBER_OUT;
	servers[server].copies = 1;
}

/* ---- Tests -----------------------------------------------------------------------*/

static void view_is_as_old_as_the_quorum(void **state)
{
	(void)state;
	assert_int_equal(reading.at_ns, 101); /* two of three */
	assert_int_equal(at(0), 100); /* as old as what it has told itself */
	assert_int_equal(at(1), 101);
	assert_int_equal(at(2), 101);
	servers[1].is_there = servers[2].is_there = false;
	judge(110);
	assert_int_equal(reading.at_ns, 0);
	assert_int_equal(at(0), 0);
}

static void server_that_is_out_is_not_read(void **state)
{
	(void)state;
	put_out(1);
	judge(110);
	all_tell(120);
	judge(120);
	assert_int_equal(reading.at_ns, 120);
	assert_int_equal(at(0), 0);
	assert_int_equal(at(1), 120);
}

/* Server 0 reaches the reader, and the others only each other: it knows of nothing. */
static void server_alone_is_no_quorum(void **state)
{
	(void)state;
	put_out(1);
	put_out(2);
	servers[1].is_there = servers[2].is_there = false;
	servers[0].seen_ns = servers[0].all_ns = 500;
	judge(500);
	assert_int_equal(at(0), 0);
	assert_int_equal(reading.zeros_at_ns, 0);
}

/* What it had told before may have been told while it was OUT. */
static void labels_count_if_told_after_the_record(void **state)
{
	(void)state;
	put_out(1);
	judge(110);
	all_tell(120);
	judge(120);
	servers[1].membership.version = 3; /* it has returned */
	servers[1].membership.members[0].state = RBX_MEMBER_IN;
	judge(130);
	assert_int_equal(at(0), 0);
	assert_int_equal(at(1), 0);
	servers[0].seen_ns = 131;
	judge(132);
	assert_int_equal(at(0), 120); /* the quorum */
	assert_int_equal(at(1), 0);
}

static void record_of_one_that_has_gone_is_forgotten(void **state)
{
	(void)state;
	put_out(2);
	judge(110);
	assert_int_equal(reading.membership.version, 2);
	servers[2].is_there = false;
	judge(120);
	assert_int_equal(reading.membership.version, 1);
	assert_int_equal(at(0), 0);
	all_tell(121);
	judge(121);
	assert_int_equal(at(0), 121);
}

static void slab_that_nobody_has_is_zeros_if_all_told_of_one_moment(void **state)
{
	(void)state;
	assert_int_equal(reading.zeros_at_ns, 100);
	servers[0].since_ns = 101; /* it has lost one since server 0 was asked for all */
	judge(102);
	assert_int_equal(reading.zeros_at_ns, 0);
	all_tell(110);
	judge(110);
	assert_int_equal(reading.zeros_at_ns, 110);
}

static void slab_may_be_at_one_that_is_missing(void **state)
{
	(void)state;
	servers[0].is_there = false;
	judge(102);
	assert_int_equal(reading.zeros_at_ns, 101); /* each has two copies */
	for (uint32_t i = 0; i < SERVERS; i++)
		servers[i].copies = 1;
	judge(103);
	assert_int_equal(reading.zeros_at_ns, 0);
	assert_int_equal(at(1), 101);
}

static void labels_that_are_too_old_are_missing(void **state)
{
	(void)state;
	rbx_reading_judge(&reading, servers, SERVERS, 102, 110);
	assert_int_equal(reading.zeros_at_ns, 0);
	servers[1].all_ns = 102;
	rbx_reading_judge(&reading, servers, SERVERS, 102, 110);
	assert_int_equal(reading.zeros_at_ns, 101);
}

static void volume_has_gone_if_a_quorum_says_so(void **state)
{
	struct rbx_member_set tell = { .count = 1, .incarnations = { 12 } };

	(void)state;
	assert_false(rbx_reading_is_gone(&reading, &tell));
	rbx_member_set_add(&tell, 99); /* no member */
	assert_false(rbx_reading_is_gone(&reading, &tell));
	rbx_member_set_add(&tell, 13);
	assert_true(rbx_reading_is_gone(&reading, &tell));
	reading.membership.epoch = 0;
	assert_false(rbx_reading_is_gone(&reading, &tell));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(view_is_as_old_as_the_quorum, begin),
		cmocka_unit_test_setup(server_that_is_out_is_not_read, begin),
		cmocka_unit_test_setup(server_alone_is_no_quorum, begin),
		cmocka_unit_test_setup(labels_count_if_told_after_the_record, begin),
		cmocka_unit_test_setup(record_of_one_that_has_gone_is_forgotten, begin),
		cmocka_unit_test_setup(slab_that_nobody_has_is_zeros_if_all_told_of_one_moment,
				       begin),
		cmocka_unit_test_setup(slab_may_be_at_one_that_is_missing, begin),
		cmocka_unit_test_setup(labels_that_are_too_old_are_missing, begin),
		cmocka_unit_test_setup(volume_has_gone_if_a_quorum_says_so, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
