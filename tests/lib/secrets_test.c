/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* secrets_test.c - the file of secrets: what its lines say, and what is refused by line. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "include/rdmabox/rdmabox.h"
#include "lib/secret.h"
#include "lib/secrets.h"

#define SECRET "0123456789abcdef"
#define QUOTA_MIN_BYTES 65536

static char directory[] = "/tmp/rdmabox-secrets-test-XXXXXX";

static int directory_make(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int directory_remove(void **state)
{
	(void)state;
	return rmdir(directory);
}

static int load(const char *text, size_t length, mode_t mode, struct rbx_secrets **secrets)
{
	char path[64];
	int fd, err;

	snprintf(path, sizeof(path), "%s/secrets", directory);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, length), length);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	*secrets = NULL;
	err = rbx_secrets_load(path, QUOTA_MIN_BYTES, secrets);
	unlink(path);
	return err;
}

static struct rbx_secrets *take(const char *text)
{
	struct rbx_secrets *secrets;

	if (load(text, strlen(text), 0600, &secrets))
		fail_msg("%s", rbx_last_error());
	return secrets;
}

static bool find(const struct rbx_secrets *secrets, const char *name,
		 struct rbx_credential *credential)
{
	char padded[RBX_CREDENTIAL_BYTES] = "";

	strcpy(padded, name);
	return rbx_secrets_find(secrets, padded, credential);
}

static void has(const struct rbx_secrets *secrets, const char *name, const char *first,
		const char *second, uint64_t quota_bytes)
{
	struct rbx_credential credential;

	assert_true(find(secrets, name, &credential));
	assert_int_equal(credential.roots_count, second ? 2 : 1);
	assert_int_equal(credential.roots[0].length_bytes, strlen(first));
	assert_memory_equal(credential.roots[0].bytes, first, strlen(first));
	if (second) {
		assert_int_equal(credential.roots[1].length_bytes, strlen(second));
		assert_memory_equal(credential.roots[1].bytes, second, strlen(second));
	}
	assert_int_equal(credential.terms.quota_bytes, quota_bytes);
}

static void lines_are_found_by_name(void **state)
{
	struct rbx_credential credential;
	struct rbx_secrets *secrets;

	(void)state;
	secrets = take("# a comment\n"
		       "\n"
		       "zebra:" SECRET ":quota=1\n"
		       "a.B-c_9,quota=64K: " SECRET "# \n"
		       "middle:old " SECRET "\n"
		       "#middle:no line\n"
		       "middle:new " SECRET); /* without a newline */
	assert_int_equal(rbx_secrets_count(secrets), 4);
	has(secrets, "zebra", SECRET ":quota=1", NULL, 0);
	has(secrets, "a.B-c_9", " " SECRET "# ", NULL, 65536);
	has(secrets, "middle", "old " SECRET, "new " SECRET, 0);
	assert_true(find(secrets, "middle", &credential));
	assert_int_equal(credential.terms.volumes_max, RBX_VOLUMES_NOT_SAID);
	assert_false(find(secrets, "", &credential));
	assert_false(find(secrets, "a", &credential));
	assert_false(find(secrets, "middl", &credential));
	assert_false(find(secrets, "middles", &credential));
	assert_false(find(secrets, "zebra2", &credential));
	assert_int_equal(credential.roots_count, 0);
	assert_false(find(NULL, "zebra", &credential));
	rbx_secrets_free(secrets);
	rbx_secrets_free(NULL);
}

static void terms_are_taken_in_any_order(void **state)
{
	struct rbx_credential credential;
	struct rbx_secrets *secrets;

	(void)state;
	secrets = take("a,volumes=7,quota=64K:" SECRET "\n"
		       "b,quota=1M,volumes=0:1" SECRET "\n"
		       "b,volumes=0,quota=1M:2" SECRET "\n"
		       "c,volumes=1024:" SECRET "\n"
		       "d,admin,quota=64K:" SECRET "\n");
	assert_true(find(secrets, "a", &credential));
	assert_int_equal(credential.terms.volumes_max, 7);
	assert_int_equal(credential.terms.quota_bytes, 65536);
	assert_true(find(secrets, "b", &credential));
	assert_int_equal(credential.terms.volumes_max, 0);
	assert_int_equal(credential.terms.quota_bytes, 1 << 20);
	assert_int_equal(credential.roots_count, 2);
	assert_true(find(secrets, "c", &credential));
	assert_int_equal(credential.terms.volumes_max, 1024);
	assert_false(credential.terms.is_admin);
	assert_true(find(secrets, "d", &credential));
	assert_true(credential.terms.is_admin);
	assert_int_equal(credential.terms.quota_bytes, 65536);
	rbx_secrets_free(secrets);
}

static void refused(const char *text, const char *line, const char *why)
{
	struct rbx_secrets *secrets;

	assert_int_equal(load(text, strlen(text), 0600, &secrets), -EINVAL);
	assert_null(secrets);
	if (!strstr(rbx_last_error(), line) || !strstr(rbx_last_error(), why))
		fail_msg("no '%s' and '%s' in: %s", line, why, rbx_last_error());
	assert_null(strstr(rbx_last_error(), "0123456789"));
}

static void broken_lines_are_refused_by_number(void **state)
{
	(void)state;
	refused("", "secrets has no secret", "add a line");
	refused("# only\n\n", "secrets has no secret", "add a line");
	refused("#\n\n" SECRET "\n", "secrets:3:", "no colon");
	refused(" \n", "secrets:1:", "no colon");
	refused(":" SECRET "\n", "secrets:1:", "no name");
	refused(",quota=1G:" SECRET "\n", "secrets:1:", "no name");
	refused("a b:" SECRET "\n", "secrets:1:", "a character");
	refused("ok:" SECRET "\n a:" SECRET "\n", "secrets:2:", "a character");
	refused("caf\xc3\xa9:" SECRET "\n", "secrets:1:", "a character");
	refused("a:0123456789abcde\n", "secrets:1:", "the secret is too short");
	refused("a:\n", "secrets:1:", "too short");
	refused("a:aaaaaaaaaaaaaaaaaaaa\n", "secrets:1:", "one byte");
	refused("a:" SECRET "\r\n", "secrets:1:", "carriage return");
	refused("a,:" SECRET "\n", "secrets:1:", "only quota=SIZE");
	refused("a,quota:" SECRET "\n", "secrets:1:", "only quota=SIZE");
	refused("a,share=1G:" SECRET "\n", "secrets:1:", "only quota=SIZE");
	refused("a,quota=:" SECRET "\n", "secrets:1:", "no size");
	refused("a,quota=1G,quota=1G:" SECRET "\n", "secrets:1:", "the quota is given twice");
	refused("a,quota=1G,:" SECRET "\n", "secrets:1:", "only quota=SIZE");
	refused("a,administrator:" SECRET "\n", "secrets:1:", "only quota=SIZE");
	refused("a,admin=1:" SECRET "\n", "secrets:1:", "only quota=SIZE");
	refused("a,adm:" SECRET "\n", "secrets:1:", "only quota=SIZE");
	refused("a,admin,admin:" SECRET "\n", "secrets:1:", "given twice");
	refused("a,volumes=:" SECRET "\n", "secrets:1:", "no number");
	refused("a,volumes=-1:" SECRET "\n", "secrets:1:", "no number");
	refused("a,volumes=1K:" SECRET "\n", "secrets:1:", "no number");
	refused("a,volumes=1025:" SECRET "\n", "secrets:1:", "more volumes");
	refused("a,volumes=99999999999999999999:" SECRET "\n", "secrets:1:", "more volumes");
	refused("a,volumes=1,volumes=1:" SECRET "\n", "secrets:1:", "given twice");
	refused("a,quota=11111111111111111111111111111111111:" SECRET "\n", "secrets:1:", "no size");
	refused("a,quota=65535:" SECRET "\n", "secrets:1:", "less than one slab");
	refused("a:1" SECRET "\nb:" SECRET "\na:2" SECRET "\na:3" SECRET "\n", "secrets:4:",
		"a has two secrets already");
	refused("a:1" SECRET "\na,quota=1G:2" SECRET "\n", "secrets:2:",
		"a has another quota in line 1");
	refused("a,volumes=1:1" SECRET "\na:2" SECRET "\n", "secrets:2:",
		"a has another number of volumes in line 1");
	refused("a:1" SECRET "\na,admin:2" SECRET "\n", "secrets:2:",
		"a has another right of an admin in line 1");
}

static void zero_bytes_are_no_ends(void **state)
{
	struct rbx_secrets *secrets;
	struct rbx_credential credential;

	(void)state;
	assert_int_equal(load("a\0b:" SECRET, 20, 0600, &secrets), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "a character"));
	assert_int_equal(load("a,quota=1G\0:" SECRET, 28, 0600, &secrets), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "no size"));
	assert_int_equal(load("a:0\0" SECRET, 20, 0600, &secrets), 0);
	assert_true(find(secrets, "a", &credential));
	assert_int_equal(credential.roots[0].length_bytes, 18);
	rbx_secrets_free(secrets);
}

static void name_and_secret_have_longest(void **state)
{
	static char line[64 + RBX_SECRET_BYTES_MAX + 2];
	const char *name = "a234567890123456789012345678901"; /* 31 */
	struct rbx_credential credential;
	struct rbx_secrets *secrets;

	(void)state;
	snprintf(line, sizeof(line), "%s:%0*d", name, RBX_SECRET_BYTES_MAX, 1);
	secrets = take(line);
	assert_true(find(secrets, name, &credential));
	assert_int_equal(credential.roots[0].length_bytes, RBX_SECRET_BYTES_MAX);
	rbx_secrets_free(secrets);
	snprintf(line, sizeof(line), "%s:%0*d", name, RBX_SECRET_BYTES_MAX + 1, 1);
	assert_int_equal(load(line, strlen(line), 0600, &secrets), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "too long"));
	snprintf(line, sizeof(line), "%s2:%s", name, SECRET);
	assert_int_equal(load(line, strlen(line), 0600, &secrets), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "longer than 31"));
}

/* Lines of the greatest length, so that the file is as long as it can be without comments. */
static char *many(uint32_t count, size_t *length)
{
	char *text = malloc(count * (RBX_SECRET_BYTES_MAX + 64ul)), *at = text;

	for (uint32_t i = 0; i < count; i++)
		at += sprintf(at, "name-%026u,quota=1G,volumes=1024:%0*u\n", count - i,
			      (int)RBX_SECRET_BYTES_MAX, i + 1);
	*length = (size_t)(at - text);
	return text;
}

static void lines_have_a_most(void **state)
{
	struct rbx_credential credential;
	struct rbx_secrets *secrets;
	char name[RBX_CREDENTIAL_BYTES];
	size_t length;
	char *text;

	(void)state;
	text = many(RBX_CREDENTIALS_MAX, &length);
	assert_int_equal(load(text, length, 0600, &secrets), 0);
	assert_int_equal(rbx_secrets_count(secrets), RBX_CREDENTIALS_MAX);
	for (uint32_t i = 1; i <= RBX_CREDENTIALS_MAX; i++) {
		snprintf(name, sizeof(name), "name-%026u", i);
		assert_true(find(secrets, name, &credential));
		assert_int_equal(strtoul((const char *)credential.roots[0].bytes, NULL, 10),
				 RBX_CREDENTIALS_MAX - i + 1);
	}
	rbx_secrets_free(secrets);
	free(text);
	text = many(RBX_CREDENTIALS_MAX + 1, &length);
	assert_int_equal(load(text, length, 0600, &secrets), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "secrets:4097: more than 4096 lines"));
	free(text);
}

static void file_is_one_that_others_cannot_read(void **state)
{
	struct rbx_secrets *secrets = NULL;

	(void)state;
	assert_int_equal(load("a:" SECRET, 18, 0604, &secrets), -EACCES);
	assert_non_null(strstr(rbx_last_error(), "chmod o-rwx"));
	assert_int_equal(rbx_secrets_load("/nonexistent/secrets", 1, &secrets), -ENOENT);
	assert_int_equal(rbx_secrets_load("/dev/zero", 1, &secrets), -EINVAL);
	assert_int_equal(rbx_secrets_load(directory, 1, &secrets), -EINVAL);
	assert_null(secrets);
}

/* Of the mapping that holds this address, whether a core file leaves it out. */
static bool is_left_out_of_core_files(const void *address)
{
	FILE *maps = fopen("/proc/self/smaps", "r");
	unsigned long begin, end;
	bool is_it = false, is_left_out = false;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2 && strchr(line, '-') < strchr(line, ' '))
			is_it = begin <= (unsigned long)address && (unsigned long)address < end;
		else if (is_it && !strncmp(line, "VmFlags:", 8))
			is_left_out = strstr(line, " dd");
	}
	fclose(maps);
	return is_left_out;
}

static void no_core_file_shows_them(void **state)
{
	struct rbx_secrets *secrets = take("a:" SECRET "\n");
	struct rbx_credential credential;

	(void)state;
	assert_true(find(secrets, "a", &credential));
	assert_true(is_left_out_of_core_files(credential.roots[0].bytes));
	assert_false(is_left_out_of_core_files(&credential));
	rbx_secrets_free(secrets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_found_by_name),
		cmocka_unit_test(terms_are_taken_in_any_order),
		cmocka_unit_test(broken_lines_are_refused_by_number),
		cmocka_unit_test(zero_bytes_are_no_ends),
		cmocka_unit_test(name_and_secret_have_longest),
		cmocka_unit_test(lines_have_a_most),
		cmocka_unit_test(file_is_one_that_others_cannot_read),
		cmocka_unit_test(no_core_file_shows_them),
	};

	return cmocka_run_group_tests(tests, directory_make, directory_remove);
}
