/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* secret_test.c - secret files, and that no proof passes for another. */
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

static char path[] = "/tmp/rdmabox-secret-test-XXXXXX";

static int directory_make(void **state)
{
	(void)state;
	return mkdtemp(path) ? 0 : -1;
}

static int directory_remove(void **state)
{
	(void)state;
	return rmdir(path);
}

/* Loads a file with these contents; what was loaded is in *secret. */
static int load(const void *bytes, size_t length, mode_t mode,
		struct rbx_secret **secret)
{
	char file[64];
	int fd, err;

	snprintf(file, sizeof(file), "%s/secret", path);
	fd = open(file, O_CREAT | O_EXCL | O_WRONLY, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, length), length);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	*secret = NULL;
	err = rbx_secret_load(file, secret);
	unlink(file);
	return err;
}

static void newline_at_the_end_is_no_part_of_it(void **state)
{
	struct rbx_secret *secret;

	(void)state;
	assert_int_equal(load("0123456789abcdef\n", 17, 0600, &secret), 0);
	assert_int_equal(secret->length_bytes, 16);
	assert_memory_equal(secret->bytes, "0123456789abcdef", 16);
	rbx_secret_free(secret);
	assert_int_equal(load("0123456789abcdef\n\n", 18, 0640, &secret), 0);
	assert_int_equal(secret->length_bytes, 17);
	rbx_secret_free(secret);
	rbx_secret_free(NULL);
}

static void length_has_bounds(void **state)
{
	static uint8_t bytes[RBX_SECRET_BYTES_MAX + 2];
	struct rbx_secret *secret;

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	bytes[0] = 'y';
	assert_int_equal(load(bytes, 0, 0600, &secret), -EINVAL);
	assert_int_equal(load("\n", 1, 0600, &secret), -EINVAL);
	assert_int_equal(load(bytes, RBX_SECRET_BYTES_MIN - 1, 0600, &secret),
			 -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "too short"));
	assert_int_equal(load(bytes, RBX_SECRET_BYTES_MAX, 0600, &secret), 0);
	assert_int_equal(secret->length_bytes, RBX_SECRET_BYTES_MAX);
	rbx_secret_free(secret);
	assert_int_equal(load(bytes, RBX_SECRET_BYTES_MAX + 1, 0600, &secret),
			 -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "too long"));
	assert_int_equal(load(bytes, sizeof(bytes), 0600, &secret), -EINVAL);
	/* The longest one with its newline. */
	bytes[RBX_SECRET_BYTES_MAX] = '\n';
	assert_int_equal(load(bytes, RBX_SECRET_BYTES_MAX + 1, 0600, &secret),
			 0);
	assert_int_equal(secret->length_bytes, RBX_SECRET_BYTES_MAX);
	rbx_secret_free(secret);
}

static void one_byte_again_and_again_is_refused(void **state)
{
	struct rbx_secret *secret;

	(void)state;
	assert_int_equal(load("aaaaaaaaaaaaaaaa\n", 17, 0600, &secret), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "one byte"));
	assert_int_equal(load("aaaaaaaaaaaaaaab\n", 17, 0600, &secret), 0);
	rbx_secret_free(secret);
}

static void file_that_everybody_can_read_is_refused(void **state)
{
	struct rbx_secret *secret;

	(void)state;
	assert_int_equal(load("0123456789abcdef", 16, 0604, &secret), -EACCES);
	assert_non_null(strstr(rbx_last_error(), "chmod"));
	assert_int_equal(load("0123456789abcdef", 16, 0602, &secret), -EACCES);
}

/* Its owner could put another secret in its place at any time. */
static void file_of_another_user_is_refused(void **state)
{
	struct rbx_secret *secret = NULL;
	char file[64];
	int fd;

	(void)state;
	if (geteuid())
		skip(); /* only root can give a file away */
	snprintf(file, sizeof(file), "%s/secret", path);
	fd = open(file, O_CREAT | O_EXCL | O_WRONLY, 0600);
	assert_int_equal(write(fd, "0123456789abcdef", 16), 16);
	assert_int_equal(fchown(fd, 65534, 65534), 0);
	assert_int_equal(rbx_secret_load(file, &secret), -EACCES);
	assert_non_null(strstr(rbx_last_error(), "chown 0"));
	assert_int_equal(fchown(fd, 0, 65534), 0);
	assert_int_equal(rbx_secret_load(file, &secret), 0);
	rbx_secret_free(secret);
	close(fd);
	unlink(file);
}

static void what_is_no_file_is_refused(void **state)
{
	struct rbx_secret *secret = NULL;

	(void)state;
	assert_int_equal(rbx_secret_load("/nonexistent/secret", &secret),
			 -ENOENT);
	assert_int_equal(rbx_secret_load(path, &secret), -EINVAL);
	assert_int_equal(rbx_secret_load("/dev/zero", &secret), -EINVAL);
	assert_null(secret);
}

static void proofs_differ_by_use_key_and_transcript(void **state)
{
	struct rbx_wire_message hello = { .type = RBX_WIRE_HELLO };
	struct rbx_wire_message challenge = { .type = RBX_WIRE_CHALLENGE,
					      .challenge.incarnation = 1 };
	struct rbx_wire_message welcome = { .type = RBX_WIRE_WELCOME, .welcome.incarnation = 1 };
	struct rbx_secret secret = { .length_bytes = 16, .bytes = { 1 } };
	struct rbx_transcript transcript;
	struct rbx_key session, connection;
	uint8_t client[RBX_WIRE_PROOF_BYTES];
	uint8_t server[RBX_WIRE_PROOF_BYTES];
	uint8_t other[RBX_WIRE_PROOF_BYTES];
	struct rbx_root root = rbx_root_of_secret(&secret);

	(void)state;
	rbx_transcript_make(&transcript, &hello, &challenge);
	rbx_proof_of_client(root, &transcript, client);
	rbx_proof_of_server(root, &transcript, &welcome, server);
	rbx_key_of_session(root, &transcript, &session);
	rbx_key_of_connection(root, &transcript, &connection);
	assert_memory_not_equal(client, server, sizeof(client));
	assert_memory_not_equal(client, session.bytes, sizeof(client));
	assert_memory_not_equal(client, connection.bytes, sizeof(client));
	assert_memory_not_equal(session.bytes, connection.bytes,
				sizeof(client));

	rbx_proof_of_client(rbx_root_of_secret(NULL), &transcript, other);
	assert_memory_not_equal(client, other, sizeof(client));
	rbx_proof_of_client(rbx_root_of_key(&session), &transcript, other);
	assert_memory_not_equal(client, other, sizeof(client));
	welcome.welcome.lease_ms = 1;
	rbx_proof_of_server(root, &transcript, &welcome, other);
	assert_memory_not_equal(server, other, sizeof(server));
	welcome.welcome.lease_ms = 0;
	memset(welcome.welcome.proof, 1, RBX_WIRE_PROOF_BYTES);
	rbx_proof_of_server(root, &transcript, &welcome, other);
	assert_memory_equal(server, other, sizeof(server));
	challenge.challenge.nonce[31] = 1;
	rbx_transcript_make(&transcript, &hello, &challenge);
	rbx_proof_of_client(root, &transcript, other);
	assert_memory_not_equal(client, other, sizeof(client));
}

/* Computed by another program, so that the formula of PROTOCOL.md is what is
 * spoken: HMAC-SHA256 of 16 zero bytes as key. */
static void client_proof_is_that_of_the_specification(void **state)
{
	static const uint8_t expected[RBX_WIRE_PROOF_BYTES] = {
		0xb5, 0x79, 0x3b, 0x6b, 0x3e, 0x94, 0xad, 0xbd,
		0x51, 0xda, 0xfa, 0xd9, 0x24, 0x22, 0xf1, 0xb4,
		0xdd, 0xba, 0x02, 0x39, 0x62, 0x02, 0x44, 0xf6,
		0xae, 0x7a, 0x92, 0x0b, 0xa2, 0x18, 0xf9, 0x76,
	};
	struct rbx_wire_message hello = {
		.type = RBX_WIRE_HELLO, .request_id = 1
	};
	struct rbx_wire_message challenge = {
		.type = RBX_WIRE_CHALLENGE, .request_id = 1, .challenge.incarnation = 1
	};
	struct rbx_secret secret = { .length_bytes = 16 };
	struct rbx_transcript transcript;
	uint8_t proof[RBX_WIRE_PROOF_BYTES];

	(void)state;
	rbx_transcript_make(&transcript, &hello, &challenge);
	rbx_proof_of_client(rbx_root_of_secret(&secret), &transcript, proof);
	assert_memory_equal(proof, expected, sizeof(proof));
}

static void mac_covers_session_and_serial(void **state)
{
	struct rbx_wire_attach attach = {
		.kind = RBX_WIRE_ATTACH_DATA, .session_id = 5, .serial = 1
	};
	struct rbx_key key = { { 1 } };
	uint8_t mac[RBX_WIRE_MAC_BYTES], other[RBX_WIRE_MAC_BYTES];

	(void)state;
	rbx_proof_of_attach(&key, &attach, mac);
	memcpy(attach.mac, mac, sizeof(mac)); /* it does not cover itself */
	rbx_proof_of_attach(&key, &attach, other);
	assert_memory_equal(mac, other, sizeof(mac));
	attach.serial = 2;
	rbx_proof_of_attach(&key, &attach, other);
	assert_memory_not_equal(mac, other, sizeof(mac));
	attach.serial = 1;
	attach.session_id = 6;
	rbx_proof_of_attach(&key, &attach, other);
	assert_memory_not_equal(mac, other, sizeof(mac));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newline_at_the_end_is_no_part_of_it),
		cmocka_unit_test(length_has_bounds),
		cmocka_unit_test(one_byte_again_and_again_is_refused),
		cmocka_unit_test(file_that_everybody_can_read_is_refused),
		cmocka_unit_test(file_of_another_user_is_refused),
		cmocka_unit_test(what_is_no_file_is_refused),
		cmocka_unit_test(proofs_differ_by_use_key_and_transcript),
		cmocka_unit_test(client_proof_is_that_of_the_specification),
		cmocka_unit_test(mac_covers_session_and_serial),
	};

	return cmocka_run_group_tests(tests, directory_make, directory_remove);
}
