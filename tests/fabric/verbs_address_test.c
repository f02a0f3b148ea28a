/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* verbs_address_test.c - addresses in words, there and back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/verbs/address.h"
#include "fabric/verbs/verbs.h"
#include "fabric/loopback.h"

static void expect_same(const char *text, bool passive, const char *expected)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct sockaddr_storage address;
	char back[RBX_NAME_MAX];

	assert_int_equal(rbx_verbs_address_parse(text, passive, &address,
						 error), 0);
	rbx_verbs_address_format((struct sockaddr *)&address, back);
	assert_string_equal(back, expected);
}

static void address_valid_comes_back_the_same(void **state)
{
	(void)state;
	expect_same("10.9.0.1:7471", false, "10.9.0.1:7471");
	expect_same("[2001:db8::1]:80", false, "[2001:db8::1]:80");
	expect_same("0.0.0.0:0", true, "0.0.0.0:0");
}

static void address_invalid_is_refused_with_the_text(void **state)
{
	static const char *const texts[] = {
		"", "10.9.0.1", "10.9.0.1:", ":7471", "2001:db8::1:80",
		"10.9.0.1:http", "10.9.0.1:99999", "10.9.0.1:65536",
		"10.9.0.1:0", "[10.9.0.1]:1", "[::1:80",
		"999.9.0.1.:7471",
	};
	struct sockaddr_storage address;
	char error[RBX_ERROR_TEXT_MAX];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		error[0] = '\0';
		assert_int_equal(rbx_verbs_address_parse(texts[i], false,
							 &address, error),
				 -EINVAL);
		assert_non_null(strstr(error, texts[i]));
	}
	assert_int_equal(rbx_verbs_address_parse(NULL, false, &address, NULL),
			 -EINVAL);
}

static void address_empty_host_is_for_listening_only(void **state)
{
	struct sockaddr_storage address;

	(void)state;
	assert_int_equal(rbx_verbs_address_parse(":7471", true, &address, NULL),
			 0);
	assert_int_equal(rbx_verbs_address_parse(":7471", false, &address,
						 NULL), -EINVAL);
}

static void address_of_this_host_alone_is_told_from_others(void **state)
{
	static const struct {
		const char *text;
		bool is_loopback;
	} cases[] = {
		{ "127.0.0.1:1", true },
		{ "127.255.0.9:1", true },
		{ "[::1]:1", true },
		{ "[::ffff:127.0.0.1]:1", true },
		{ "10.9.0.1:1", false },
		{ "128.0.0.1:1", false },
		{ "0.0.0.0:1", false },
		{ "[::]:1", false },
		{ "[fe80::1]:1", false },
		{ "[::ffff:10.9.0.1]:1", false },
	};
	struct sockaddr_storage address;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(rbx_verbs_address_parse(cases[i].text, true,
							 &address, NULL), 0);
		assert_int_equal(rbx_sockaddr_is_loopback((struct sockaddr *)&address),
				 cases[i].is_loopback);
	}
}

/* The address decides, before there is a device to ask. */
static void another_machine_is_refused_without_a_secret(void **state)
{
	struct rbx_connect_init connect = {
		.address = "10.9.0.1:7471",
		.timeout_ms = 1000,
		.loopback_only = true,
	};
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_qp_init init = { 0 };
	struct rbx_qp *qp = NULL;

	(void)state;
	assert_int_equal(rbx_verbs_connect(NULL, &init, &connect, &qp, error), -EREMOTE);
	assert_string_equal(error, "10.9.0.1:7471 is another machine");
	assert_null(qp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(address_valid_comes_back_the_same),
		cmocka_unit_test(address_invalid_is_refused_with_the_text),
		cmocka_unit_test(address_empty_host_is_for_listening_only),
		cmocka_unit_test(address_of_this_host_alone_is_told_from_others),
		cmocka_unit_test(another_machine_is_refused_without_a_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
