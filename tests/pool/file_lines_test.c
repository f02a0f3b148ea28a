/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* file_lines_test.c - the lines of a pool's file: good ones, and what is said of bad ones. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "include/rdmabox/rdmabox.h"
#include "pool/pool.h"

static struct rbx_members members;

static int parse_bytes(const char *text, size_t length_bytes)
{
	char *copy = malloc(length_bytes + 1);
	int err;

	memcpy(copy, text, length_bytes);
	copy[length_bytes] = '\0';
	rbx_members_free(&members);
	err = rbx_pool_lines_parse("pool", copy, length_bytes, &members);
	free(copy);
	return err;
}

static int parse(const char *text)
{
	return parse_bytes(text, strlen(text));
}

static void refused(const char *text, const char *said)
{
	assert_int_equal(parse(text), -EINVAL);
	if (!strstr(rbx_last_error(), said))
		fail_msg("\"%s\" does not say \"%s\"", rbx_last_error(), said);
}

static void lines_have_addresses_labels_and_comments(void **state)
{
	(void)state;
	assert_int_equal(parse("# the north hall\n"
			       "\n"
			       "10.0.0.1:7471 rack=7 zone=b # the old one\n"
			       " \t[::1]:7471\t \r\n"
			       "a:1#b:2"),
			 0);
	assert_int_equal(members.count, 3);
	assert_string_equal(members.list[0].address, "10.0.0.1:7471");
	assert_string_equal(members.list[0].labels, "rack=7,zone=b");
	assert_true(members.list[0].free_bytes == RBX_POOL_NOT_TOLD);
	assert_string_equal(members.list[1].address, "[::1]:7471");
	assert_string_equal(members.list[1].labels, "");
	assert_string_equal(members.list[2].address, "a:1");
	assert_int_equal(parse(""), 0);
	assert_int_equal(members.count, 0);
}

static void broken_lines_are_named_by_number(void **state)
{
	(void)state;
	refused("a:1\n\nnonsense\n", "pool:3: \"nonsense\" is no address host:port");
	refused("a:1,b:1\n", "pool:1: ");
	refused("a:1\nb:1 rack\n", "pool:2: \"rack\" is no label");
	refused("a:1 rack=7,zone=b\n", "pool:1: \"rack=7,zone=b\" is no label");
	refused("a:1 rack=7 rack=8\n", "pool:1: \"rack=8\" is no label");
	refused("a:1\nb:1\n# c\na:1\n", "pool:4: a:1 is there twice");
	refused("a:1\n\x1b[31mred:1\n", "pool:2: \"?[31mred:1\" is no address");
}

static void labels_are_not_longer_than_there_is_room(void **state)
{
	char text[600] = "a:1 n=";

	(void)state;
	memset(text + 6, 'v', 253);
	assert_int_equal(parse(text), 0);
	assert_int_equal(strlen(members.list[0].labels), 255);
	strcat(text, " m=1");
	assert_int_equal(parse(text), -EINVAL);
	memset(text + 6, 'v', 400);
	assert_int_equal(parse(text), -EINVAL);
}

static void zero_byte_is_no_text(void **state)
{
	(void)state;
	assert_int_equal(parse_bytes("a:1\nb:1\0c:1\n", 12), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "pool:"));
	assert_non_null(strstr(rbx_last_error(), "zero"));
	assert_int_equal(parse_bytes("a:1\n\0", 5), -EINVAL);
}

static void members_beyond_the_limit_are_refused_at_their_line(void **state)
{
	char *text = malloc((RBX_POOL_MEMBERS_MAX + 1) * 12), *end = text;

	(void)state;
	for (int i = 0; i <= RBX_POOL_MEMBERS_MAX; i++)
		end += sprintf(end, "h%d:1\n", i);
	assert_int_equal(parse(text), -ENOSPC);
	assert_non_null(strstr(rbx_last_error(), "pool:1025: "));
	free(text);
}

static int teardown(void **state)
{
	(void)state;
	rbx_members_free(&members);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_have_addresses_labels_and_comments),
		cmocka_unit_test(broken_lines_are_named_by_number),
		cmocka_unit_test(labels_are_not_longer_than_there_is_room),
		cmocka_unit_test(zero_byte_is_no_text),
		cmocka_unit_test(members_beyond_the_limit_are_refused_at_their_line),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
