/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* verbs_gid_test.c - the choice among a port's gids, over made-up tables. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/verbs/gid.h"

static struct ibv_gid_entry gid(uint32_t index, uint32_t port,
				enum ibv_gid_type type, const char *address)
{
	struct ibv_gid_entry entry = {
		.gid_index = index,
		.port_num = port,
		.gid_type = type,
	};

	assert_int_equal(inet_pton(AF_INET6, address, entry.gid.raw), 1);
	return entry;
}

static void gid_choose_prefers_v2_of_ipv4(void **state)
{
	const struct ibv_gid_entry gids[] = {
		gid(0, 1, IBV_GID_TYPE_ROCE_V1, "fe80::1"),
		gid(1, 1, IBV_GID_TYPE_ROCE_V2, "fe80::1"),
		gid(2, 1, IBV_GID_TYPE_ROCE_V2, "2001:db8::1"),
		gid(3, 1, IBV_GID_TYPE_ROCE_V1, "::ffff:10.0.0.1"),
		gid(4, 1, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.1"),
		gid(5, 1, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.2"),
	};

	(void)state;
	assert_int_equal(rbx_verbs_gid_choose(gids, 6, 1, -1), 4);
	/* next best, as the better ones are missing */
	assert_int_equal(rbx_verbs_gid_choose(gids, 4, 1, -1), 2);
	assert_int_equal(rbx_verbs_gid_choose(gids, 2, 1, -1), 1);
	assert_int_equal(rbx_verbs_gid_choose(gids, 1, 1, -1), 0);
}

static void gid_choose_only_other_ports_finds_none(void **state)
{
	const struct ibv_gid_entry gids[] = {
		gid(0, 1, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.1"),
	};

	(void)state;
	assert_int_equal(rbx_verbs_gid_choose(gids, 1, 2, -1), -ENOENT);
	assert_int_equal(rbx_verbs_gid_choose(gids, 0, 1, -1), -ENOENT);
}

static void gid_choose_skips_empty_entries(void **state)
{
	const struct ibv_gid_entry gids[] = {
		gid(0, 1, IBV_GID_TYPE_ROCE_V2, "::"),
		gid(1, 1, IBV_GID_TYPE_ROCE_V1, "fe80::1"),
	};

	(void)state;
	assert_int_equal(rbx_verbs_gid_choose(gids, 2, 1, -1), 1);
	assert_int_equal(rbx_verbs_gid_choose(gids, 2, 1, 0), -ENOENT);
}

static void gid_choose_index_wanted_is_obeyed(void **state)
{
	/* positions and indices differ: tables have holes */
	const struct ibv_gid_entry gids[] = {
		gid(0, 1, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.1"),
		gid(7, 1, IBV_GID_TYPE_ROCE_V1, "fe80::1"),
	};

	(void)state;
	assert_int_equal(rbx_verbs_gid_choose(gids, 2, 1, 7), 1);
	assert_int_equal(rbx_verbs_gid_choose(gids, 2, 1, 1), -ENOENT);
}

static void gid_format_names_index_address_and_type(void **state)
{
	const struct ibv_gid_entry entry =
		gid(1, 1, IBV_GID_TYPE_ROCE_V2, "::ffff:10.9.0.1");
	char text[64];

	(void)state;
	rbx_verbs_gid_format(&entry, text, sizeof(text));
	assert_string_equal(text, "gid 1 (::ffff:10.9.0.1, RoCE v2)");
}

static void gid_to_address_ipv4_is_taken_out(void **state)
{
	const struct ibv_gid_entry entry =
		gid(1, 1, IBV_GID_TYPE_ROCE_V2, "::ffff:10.9.0.1");
	struct sockaddr_storage address;
	const struct sockaddr_in *in = (const struct sockaddr_in *)&address;

	(void)state;
	rbx_verbs_gid_to_address(&entry, &address);
	assert_int_equal(address.ss_family, AF_INET);
	assert_int_equal(in->sin_addr.s_addr, inet_addr("10.9.0.1"));
}

static void gid_to_address_where_there_is_none_is_unspecified(void **state)
{
	const struct ibv_gid_entry local =
		gid(0, 1, IBV_GID_TYPE_ROCE_V2, "fe80::1");
	const struct ibv_gid_entry infiniband =
		gid(0, 1, IBV_GID_TYPE_IB, "2001:db8::1");
	struct sockaddr_storage address;

	(void)state;
	rbx_verbs_gid_to_address(&local, &address);
	assert_int_equal(address.ss_family, AF_UNSPEC);
	rbx_verbs_gid_to_address(&infiniband, &address);
	assert_int_equal(address.ss_family, AF_UNSPEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gid_choose_prefers_v2_of_ipv4),
		cmocka_unit_test(gid_choose_only_other_ports_finds_none),
		cmocka_unit_test(gid_choose_skips_empty_entries),
		cmocka_unit_test(gid_choose_index_wanted_is_obeyed),
		cmocka_unit_test(gid_format_names_index_address_and_type),
		cmocka_unit_test(gid_to_address_ipv4_is_taken_out),
		cmocka_unit_test(
			gid_to_address_where_there_is_none_is_unspecified),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
