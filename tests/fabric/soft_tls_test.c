/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_tls_test.c - who gets a connection under TLS, and who is told why not.
 *
 * What connections under TLS carry is tested by the tests of all fabrics, which run over it,
 * too; what becomes of it on its way by soft_tls_middle_test.c.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "fabric/soft/limits.h"
#include "tests/fabric/bare_socket.h"
#include "tests/fabric/tls_devices.h"

#define PATIENCE_MS 20000

struct accepting {
	struct tls_world *world;
	struct rbx_qp *qp;
	int err;
};

static void *accept_run(void *argument)
{
	struct accepting *accepting = argument;
	const struct rbx_qp_init init = tls_qp_init(accepting->world->server_cq, true);

	accepting->err = accepting->world->ops->accept(
		test_request_wait(accepting->world->listener), &init, NULL, 0,
		&accepting->qp, NULL);
	return NULL;
}

/* Connects, as far as it goes: 0, or what connect() returns. */
static int connect_and_end(struct tls_world *world, char *error)
{
	struct accepting accepting = { world, NULL, 0 };
	pthread_t thread;
	struct rbx_qp *qp;
	int err;

	pthread_create(&thread, NULL, accept_run, &accepting);
	err = tls_connect(world, world->listener->address, PATIENCE_MS, &qp, error);
	pthread_join(thread, NULL);
	if (!err)
		world->ops->destroy_qp(qp);
	if (accepting.qp)
		world->ops->destroy_qp(accepting.qp);
	assert_int_equal(accepting.err, err ? -EPROTO : 0);
	return err;
}

static void expect_connection(struct tls_world *world)
{
	char error[RBX_ERROR_TEXT_MAX];

	if (connect_and_end(world, error))
		fail_msg("connect: %s", error);
}

/* Both sides are told what is wrong, and another connection is none the worse. */
static void expect_refusal(struct rbx_device *server, struct rbx_device *client, int err,
			   const char *to_client, const char *to_server)
{
	struct rbx_conn_request *request;
	char error[RBX_ERROR_TEXT_MAX];
	struct tls_world world;
	struct rbx_qp *qp;

	tls_world_open(&world, server, client);
	assert_int_equal(tls_connect(&world, world.listener->address, PATIENCE_MS, &qp, error),
			 err);
	if (!strstr(error, to_client))
		fail_msg("the client is told: %s", error);
	request = test_request_wait(world.listener);
	assert_non_null(request->unfit);
	if (!strstr(request->unfit, to_server))
		fail_msg("the server is told: %s", request->unfit);
	world.ops->reject(request, "reason", 6);
	/* accept() does not make a connection of it either. */
	assert_int_equal(connect_and_end(&world, error), err);
	tls_world_close(&world);
}

static void plain_client_of_tls_listener_is_told(void **state)
{
	(void)state;
	expect_refusal(tls_device(RBX_TLS_ALWAYS, 1), tls_device(RBX_TLS_NEVER, 1), -EPROTO,
		       "it wants TLS: use integrity=tls", "it does not use TLS");
}

static void tls_client_of_plain_listener_is_told(void **state)
{
	(void)state;
	expect_refusal(tls_device(RBX_TLS_NEVER, 1), tls_device(RBX_TLS_ALWAYS, 1), -EPROTO,
		       "it does not use TLS", "it uses TLS, and this side does not");
}

static void other_key_refused(void **state)
{
	(void)state;
	expect_refusal(tls_device(RBX_TLS_ALWAYS, 1), tls_device(RBX_TLS_ALWAYS, 2), -EACCES,
		       "does not have the secret", "it does not have our secret");
}

/* The name alone proves nothing. */
static void other_key_of_the_same_name_refused(void **state)
{
	struct rbx_device *client = tls_device(RBX_TLS_ALWAYS, 1);
	struct rbx_tls_key key = tls_key(1);

	(void)state;
	key.bytes[RBX_TLS_KEY_BYTES - 1] ^= 1;
	assert_int_equal(client->ops->add_tls_key(client, &key), 0);
	expect_refusal(tls_device(RBX_TLS_ALWAYS, 1), client, -EACCES,
		       "does not have the secret", "it does not have our secret");
}

static void same_key_of_another_name_refused(void **state)
{
	struct rbx_device *client = tls_device(RBX_TLS_ALWAYS, 1);
	struct rbx_tls_key key = tls_key(1);

	(void)state;
	strcpy(key.identity, "test:12");
	assert_int_equal(client->ops->add_tls_key(client, &key), 0);
	expect_refusal(tls_device(RBX_TLS_ALWAYS, 1), client, -EACCES,
		       "does not have the secret", "it does not have our secret");
}

/* A client that has not heard of the newest keys is still known, up to a bound. */
static void earlier_keys_are_accepted(void **state)
{
	struct rbx_device *server = tls_device(RBX_TLS_ALWAYS, 1);
	struct tls_world world;
	struct rbx_tls_key key;
	uint32_t more;
	uint8_t number;
	char error[RBX_ERROR_TEXT_MAX];

	(void)state;
	tls_world_open(&world, server, tls_device(RBX_TLS_ALWAYS, 1));
	for (number = 2; number <= 20; number++) {
		key = tls_key(number);
		assert_int_equal(server->ops->add_tls_key(server, &key), 0);
		expect_connection(&world);
	}
	for (more = 20; more < SOFT_TLS_KEYS_MAX; more++) {
		snprintf(key.identity, sizeof(key.identity), "key %u", more);
		assert_int_equal(server->ops->add_tls_key(server, &key), 0);
	}
	assert_int_equal(server->ops->add_tls_key(server, &key), 0); /* no news */
	expect_connection(&world);
	key = tls_key(0);
	assert_int_equal(server->ops->add_tls_key(server, &key), 0);
	assert_int_equal(connect_and_end(&world, error), -EACCES);
	/* The client takes the current one of its own. */
	assert_int_equal(world.client->ops->add_tls_key(world.client, &key), 0);
	expect_connection(&world);
	tls_world_close(&world);
}

static void key_for_a_device_without_tls_refused(void **state)
{
	struct rbx_device *device = tls_device(RBX_TLS_NEVER, 1);
	const struct rbx_tls_key key = tls_key(1);

	(void)state;
	assert_int_equal(device->ops->add_tls_key(device, &key), -EINVAL);
	device->ops->close(device);
}

/* Beyond loopback is not at 127.0.0.1: devices of both kinds meet there. */
static void loopback_is_in_clear_text_unless_always(void **state)
{
	struct tls_world world;

	(void)state;
	tls_world_open(&world, tls_device(RBX_TLS_BEYOND_LOOPBACK, 1),
		       tls_device(RBX_TLS_NEVER, 1));
	expect_connection(&world);
	tls_world_close(&world);
	tls_world_open(&world, tls_device(RBX_TLS_NEVER, 1),
		       tls_device(RBX_TLS_BEYOND_LOOPBACK, 2));
	expect_connection(&world);
	tls_world_close(&world);
}

/* ---- Peers that do not get that far ------------------------------------------------ */

static void garbage_after_the_first_byte_closed(void **state)
{
	struct rbx_conn_request *request;
	struct tls_world world;
	uint8_t garbage[600];
	uint32_t i;
	int fd;

	(void)state;
	tls_world_open(&world, tls_device(RBX_TLS_ALWAYS, 1), tls_device(RBX_TLS_ALWAYS, 1));
	for (i = 0; i < 20; i++) {
		test_fill(garbage, sizeof(garbage), i);
		memcpy(garbage, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", i % 12);
		fd = socket_open(world.listener);
		send(fd, garbage, sizeof(garbage), MSG_NOSIGNAL);
		shutdown(fd, SHUT_WR); /* it may wait for the rest of a long record */
		assert_true(socket_is_closed(fd));
		close(fd);
	}
	assert_int_equal(world.ops->get_request(world.listener, &request), -EAGAIN);
	expect_connection(&world);
	tls_world_close(&world);
}

/* A part of a handshake, then nothing: neither a crowd of them nor the time matters. */
static void stalled_handshakes_keep_nobody_out(void **state)
{
	static const uint8_t part[] = { 22, 3, 1, 1, 0, 1, 0, 0, 252, 3, 3 };
	int fds[SOFT_HALF_OPEN_MAX + 10];
	struct tls_world world;
	size_t i, count = sizeof(fds) / sizeof(*fds);

	(void)state;
	tls_world_open(&world, tls_device(RBX_TLS_ALWAYS, 1), tls_device(RBX_TLS_ALWAYS, 1));
	for (i = 0; i < count; i++) {
		fds[i] = socket_open_from(world.listener, 2);
		send(fds[i], part, sizeof(part), MSG_NOSIGNAL);
	}
	expect_connection(&world);
	for (i = 0; i < count; i++) {
		assert_true(socket_is_closed(fds[i])); /* by the bound, or by the time */
		close(fds[i]);
	}
	expect_connection(&world);
	tls_world_close(&world);
}

/* A listener that accepts connections and says nothing. */
static int silent_listener(char *address)
{
	struct sockaddr_in name = { .sin_family = AF_INET };
	socklen_t length = sizeof(name);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &length), 0);
	sprintf(address, "127.0.0.1:%u", ntohs(name.sin_port));
	return fd;
}

static void silent_server_times_out(void **state)
{
	char address[64], error[RBX_ERROR_TEXT_MAX];
	int fd = silent_listener(address);
	struct tls_world world;
	struct rbx_qp *qp;

	(void)state;
	tls_world_open(&world, tls_device(RBX_TLS_ALWAYS, 1), tls_device(RBX_TLS_ALWAYS, 1));
	assert_int_equal(tls_connect(&world, address, 200, &qp, error), -ETIMEDOUT);
	tls_world_close(&world);
	close(fd);
}

/* ---- Peers with an OpenSSL of their own --------------------------------------------- */

static X509 *certificate_make(EVP_PKEY *key)
{
	X509 *certificate = X509_new();

	ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
	X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
	X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
	X509_set_pubkey(certificate, key);
	assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
	return certificate;
}

struct impostor {
	int listener;
	int result; /* of SSL_accept() */
};

/* A TLS server that knows no key and shows a certificate. */
static void *impostor_run(void *argument)
{
	struct impostor *impostor = argument;
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = certificate_make(key);
	int fd = accept(impostor->listener, NULL, NULL);
	SSL *ssl;

	SSL_CTX_use_certificate(context, certificate);
	SSL_CTX_use_PrivateKey(context, key);
	ssl = SSL_new(context);
	SSL_set_fd(ssl, fd);
	impostor->result = SSL_accept(ssl);
	SSL_free(ssl);
	close(fd);
	X509_free(certificate);
	EVP_PKEY_free(key);
	SSL_CTX_free(context);
	return NULL;
}

static void server_with_a_certificate_refused(void **state)
{
	char address[64], error[RBX_ERROR_TEXT_MAX];
	struct impostor impostor = { silent_listener(address), 1 };
	struct tls_world world;
	struct rbx_qp *qp;
	pthread_t thread;

	(void)state;
	pthread_create(&thread, NULL, impostor_run, &impostor);
	tls_world_open(&world, tls_device(RBX_TLS_ALWAYS, 1), tls_device(RBX_TLS_ALWAYS, 1));
	assert_int_equal(tls_connect(&world, address, PATIENCE_MS, &qp, error), -EACCES);
	pthread_join(thread, NULL);
	assert_true(impostor.result <= 0); /* nor did the other side believe in it */
	tls_world_close(&world);
	close(impostor.listener);
}

static int known_psk(SSL *ssl, const EVP_MD *digest, const unsigned char **id,
		     size_t *id_bytes, SSL_SESSION **session)
{
	static const unsigned char number[] = { 0x13, 0x01 };
	static struct rbx_tls_key key;

	(void)digest;
	key = tls_key(1);
	*session = SSL_SESSION_new();
	SSL_SESSION_set1_master_key(*session, key.bytes, sizeof(key.bytes));
	SSL_SESSION_set_cipher(*session, SSL_CIPHER_find(ssl, number));
	SSL_SESSION_set_protocol_version(*session, TLS1_3_VERSION);
	*id = (unsigned char *)key.identity;
	*id_bytes = strlen(key.identity);
	return 1;
}

/* What a client with the right key gets that is set up by `set`. */
static int client_of_openssl(const struct tls_world *world, void (*set)(SSL_CTX *))
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	int fd = socket_open(world->listener), result;
	struct timeval patience = { .tv_sec = 30 };
	SSL *ssl;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	SSL_CTX_set_psk_use_session_callback(context, known_psk);
	set(context);
	ssl = SSL_new(context);
	SSL_set_fd(ssl, fd);
	result = SSL_connect(ssl);
	if (result == 1)
		assert_int_equal(SSL_session_reused(ssl), 1);
	SSL_free(ssl);
	SSL_CTX_free(context);
	close(fd);
	return result;
}

static void set_nothing(SSL_CTX *context)
{
	(void)context;
}

static void set_older_version(SSL_CTX *context)
{
	SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
}

static void set_other_cipher(SSL_CTX *context)
{
	SSL_CTX_set_ciphersuites(context, "TLS_CHACHA20_POLY1305_SHA256");
}

static void set_no_key(SSL_CTX *context)
{
	SSL_CTX_set_psk_use_session_callback(context, NULL);
}

static void only_what_the_protocol_says_is_agreed_on(void **state)
{
	struct tls_world world;

	(void)state;
	tls_world_open(&world, tls_device(RBX_TLS_ALWAYS, 1), tls_device(RBX_TLS_ALWAYS, 1));
	assert_int_equal(client_of_openssl(&world, set_nothing), 1);
	assert_true(client_of_openssl(&world, set_older_version) <= 0);
	assert_true(client_of_openssl(&world, set_other_cipher) <= 0);
	assert_true(client_of_openssl(&world, set_no_key) <= 0);
	tls_world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_client_of_tls_listener_is_told),
		cmocka_unit_test(tls_client_of_plain_listener_is_told),
		cmocka_unit_test(other_key_refused),
		cmocka_unit_test(other_key_of_the_same_name_refused),
		cmocka_unit_test(same_key_of_another_name_refused),
		cmocka_unit_test(earlier_keys_are_accepted),
		cmocka_unit_test(key_for_a_device_without_tls_refused),
		cmocka_unit_test(loopback_is_in_clear_text_unless_always),
		cmocka_unit_test(garbage_after_the_first_byte_closed),
		cmocka_unit_test(stalled_handshakes_keep_nobody_out),
		cmocka_unit_test(silent_server_times_out),
		cmocka_unit_test(server_with_a_certificate_refused),
		cmocka_unit_test(only_what_the_protocol_says_is_agreed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
