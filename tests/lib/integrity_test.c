/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* integrity_test.c - which connections are under TLS, and with which key. */
#include "lib/integrity.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "include/rdmabox/rdmabox.h"

static const struct rbx_fabric_ops without_tls = { .name = "nic" };
static struct rbx_secret secret = { 16, "0123456789abcdef" };
static struct rbx_fabric_choice choice;
static struct rbx_tls_key key;

static int choose(uint32_t integrity, const struct rbx_secret *with,
		  const struct rbx_fabric_ops *ops)
{
	choice = (struct rbx_fabric_choice){ .ops = ops };
	if (with)
		rbx_tls_key_of_root(rbx_root_of_secret(with), "", &key);
	return rbx_integrity_choose(integrity, with ? &key : NULL, &choice);
}

static void key_is_made_of_secret_and_name(void **state)
{
	struct rbx_secret other = { 16, "0123456789abcdeg" };
	struct rbx_tls_key another;

	(void)state;
	rbx_tls_key_of_root(rbx_root_of_secret(&secret), "", &key);
	/* printf 'rdmabox tls' | openssl dgst -sha256 -hmac 0123456789abcdef */
	assert_memory_equal(key.bytes,
			    "\x46\x79\x28\xde\xf7\x3a\xb8\x32\x44\x1d\x83\xa6\x1a\x82\xf9\x1a"
			    "\x66\xb1\xf7\x5e\x09\xb5\x17\xad\x3b\x0b\x13\x42\x8b\xe5\x6e\xfa",
			    RBX_TLS_KEY_BYTES);
	assert_string_equal(key.identity, ":77aaf24bde75ab51");
	rbx_tls_key_of_root(rbx_root_of_secret(&secret), "blue", &another);
	assert_memory_equal(another.bytes, key.bytes, RBX_TLS_KEY_BYTES);
	assert_memory_equal(another.identity, "blue:", 5);
	assert_string_equal(another.identity + 4, key.identity);
	rbx_tls_key_of_root(rbx_root_of_secret(&other), "", &another);
	assert_memory_not_equal(another.bytes, key.bytes, RBX_TLS_KEY_BYTES);
	assert_string_not_equal(another.identity, key.identity);
}

static void default_is_tls_beyond_loopback_if_it_can_be(void **state)
{
	(void)state;
	assert_int_equal(choose(RBX_INTEGRITY_DEFAULT, &secret, &rbx_fabric_soft), 0);
	assert_int_equal(choice.options.tls, RBX_TLS_BEYOND_LOOPBACK);
	assert_ptr_equal(choice.options.tls_key, &key);
	assert_int_equal(choose(RBX_INTEGRITY_DEFAULT, NULL, &rbx_fabric_soft), 0);
	assert_int_equal(choice.options.tls, RBX_TLS_NEVER);
	assert_int_equal(choose(RBX_INTEGRITY_DEFAULT, &secret, &without_tls), 0);
	assert_int_equal(choice.options.tls, RBX_TLS_NEVER);
}

static void tls_is_always_or_refused(void **state)
{
	(void)state;
	assert_int_equal(choose(RBX_INTEGRITY_TLS, &secret, &rbx_fabric_soft), 0);
	assert_int_equal(choice.options.tls, RBX_TLS_ALWAYS);
	assert_int_equal(choose(RBX_INTEGRITY_TLS, NULL, &rbx_fabric_soft), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "needs a secret"));
	assert_int_equal(choose(RBX_INTEGRITY_TLS, &secret, &without_tls), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "with nic the NIC moves the data"));
}

static void off_and_mac_are_never(void **state)
{
	(void)state;
	assert_int_equal(choose(RBX_INTEGRITY_OFF, &secret, &rbx_fabric_soft), 0);
	assert_int_equal(choice.options.tls, RBX_TLS_NEVER);
	assert_int_equal(choose(RBX_INTEGRITY_MAC, &secret, &rbx_fabric_soft), 0);
	assert_int_equal(choice.options.tls, RBX_TLS_NEVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key_is_made_of_secret_and_name),
		cmocka_unit_test(default_is_tls_beyond_loopback_if_it_can_be),
		cmocka_unit_test(tls_is_always_or_refused),
		cmocka_unit_test(off_and_mac_are_never),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
