/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* host_port_test.c - addresses at each of their limits, and one past it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/host_port.h"

static void takes(const char *text, bool listener, const char *host,
		  uint16_t number, const char *port)
{
	struct rbx_host_port got;

	memset(&got, 0xee, sizeof(got));
	assert_int_equal(rbx_host_port_parse(text, listener, &got), 0);
	assert_string_equal(got.host, host);
	assert_int_equal(got.number, number);
	assert_string_equal(got.port, port);
}

static void refuses(const char *text, bool listener)
{
	struct rbx_host_port got;

	if (!rbx_host_port_parse(text, listener, &got))
		fail_msg("'%s' is taken as '%s' and %s", text, got.host,
			 got.port);
}

static void port_is_within_its_limits(void **state)
{
	static const char *const bad[] = {
		"a:65536", "a:65537", "a:99999", "a:73007", "a:100000",
		"a:4294967297", "a:18446744073709551617", "a:-1", "a:+1",
		"a: 1", "a:1 ", "a:0x1", "a:01", "a:00", "a:1a", "a:http",
		"a:", "a",
	};
	size_t i;

	(void)state;
	takes("a:1", false, "a", 1, "1");
	takes("a:65535", false, "a", 65535, "65535");
	takes("a:65535", true, "a", 65535, "65535");
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		refuses(bad[i], false);
		refuses(bad[i], true);
	}
}

static void port_0_and_no_host_are_for_listeners(void **state)
{
	(void)state;
	takes("a:0", true, "a", 0, "0");
	takes(":7471", true, "", 7471, "7471");
	takes(":0", true, "", 0, "0");
	refuses("a:0", false);
	refuses(":7471", false);
	refuses(":0", false);
	refuses("", true);
	refuses(":", true);
}

static void colons_belong_into_brackets(void **state)
{
	static const char *const bad[] = {
		"::1:80", "2001:db8::1:80", "[::1:80", "::1]:80", "[::1]80",
		"[::1]", "[10.9.0.1]:1", "[]:1", "[[::1]]:80", "a[::1]:80",
		"[::1]a:80", "a:b:1", "]:1", "[:1",
	};
	size_t i;

	(void)state;
	takes("[::1]:80", false, "::1", 80, "80");
	takes("[fe80::1%eth0]:7471", false, "fe80::1%eth0", 7471, "7471");
	takes("[::]:0", true, "::", 0, "0");
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		refuses(bad[i], false);
		refuses(bad[i], true);
	}
}

static void host_is_as_long_as_a_name_may_be(void **state)
{
	char text[RBX_HOST_BYTES_MAX + 8];

	(void)state;
	memset(text, 'a', sizeof(text));
	strcpy(text + RBX_HOST_BYTES_MAX, ":1");
	refuses(text, false);
	strcpy(text + RBX_HOST_BYTES_MAX - 1, ":1");
	text[0] = 'b';
	{
		struct rbx_host_port got;

		assert_int_equal(rbx_host_port_parse(text, false, &got), 0);
		assert_int_equal(strlen(got.host), RBX_HOST_BYTES_MAX - 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(port_is_within_its_limits),
		cmocka_unit_test(port_0_and_no_host_are_for_listeners),
		cmocka_unit_test(colons_belong_into_brackets),
		cmocka_unit_test(host_is_as_long_as_a_name_may_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
