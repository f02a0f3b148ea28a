/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tls_keys.c - what all TLS connections of a device have in common: the settings of OpenSSL,
 * and the keys.
 *
 * There are no certificates: each side proves that it has the key, which the connecting side
 * names by its identity. The key only authenticates. What encrypts is agreed on anew for each
 * connection by (EC)DHE (psk_dhe_ke), so that a key which gets known later opens nothing that
 * was recorded before. An acceptor finds all keys that it was given.
 */
#include "tls_keys.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/err.h>

#include "limits.h"

/* TLS_AES_128_GCM_SHA256: its hash has to be that of the key. */
#define CIPHER_NAME "TLS_AES_128_GCM_SHA256"
static const unsigned char cipher_number[2] = { 0x13, 0x01 };

struct soft_tls_keys {
	SSL_CTX *context;
	pthread_mutex_t lock; /* guards the keys */
	struct rbx_tls_key *keys; /* the current one last */
	uint32_t count;
	uint32_t room;
};

static struct soft_tls_keys *keys_of(SSL *ssl)
{
	return SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
}

/* NULL: no memory. */
static SSL_SESSION *session_make(SSL *ssl, const struct rbx_tls_key *key)
{
	SSL_SESSION *session = SSL_SESSION_new();
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, cipher_number);

	if (session && cipher &&
	    SSL_SESSION_set1_master_key(session, key->bytes, sizeof(key->bytes)) &&
	    SSL_SESSION_set_cipher(session, cipher) &&
	    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

/* The connecting side names its current key. */
static int key_use(SSL *ssl, const EVP_MD *digest, const unsigned char **identity,
		   size_t *identity_bytes, SSL_SESSION **session)
{
	struct soft_tls_keys *keys = keys_of(ssl);
	char *name = soft_tls_identity(SSL_get_app_data(ssl));

	(void)digest; /* there is one */
	pthread_mutex_lock(&keys->lock);
	*session = session_make(ssl, &keys->keys[keys->count - 1]);
	memcpy(name, keys->keys[keys->count - 1].identity, RBX_TLS_IDENTITY_MAX);
	pthread_mutex_unlock(&keys->lock);
	*identity = (const unsigned char *)name;
	*identity_bytes = strlen(name);
	return *session != NULL;
}

static bool is_named(const struct rbx_tls_key *key, const unsigned char *identity,
		     size_t bytes)
{
	return strlen(key->identity) == bytes && !memcmp(key->identity, identity, bytes);
}

/* The accepting side looks for the key that the peer names. */
static int key_find(SSL *ssl, const unsigned char *identity, size_t identity_bytes,
		    SSL_SESSION **session)
{
	struct soft_tls_keys *keys = keys_of(ssl);
	uint32_t i;
	int ok = 1;

	*session = NULL;
	pthread_mutex_lock(&keys->lock);
	for (i = 0; i < keys->count; i++)
		if (is_named(&keys->keys[i], identity, identity_bytes))
			break;
	if (i < keys->count) {
		*session = session_make(ssl, &keys->keys[i]);
		ok = *session != NULL;
	} else {
		soft_tls_unknown_identity(SSL_get_app_data(ssl));
	}
	pthread_mutex_unlock(&keys->lock);
	return ok;
}

static bool context_set(SSL_CTX *context)
{
	SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION |
					     SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_quiet_shutdown(context, 1);
	SSL_CTX_set_default_read_buffer_len(context, SOFT_TLS_READ_BYTES);
	SSL_CTX_set_psk_use_session_callback(context, key_use);
	SSL_CTX_set_psk_find_session_callback(context, key_find);
	return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) &&
	       SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) &&
	       SSL_CTX_set_ciphersuites(context, CIPHER_NAME) &&
	       SSL_CTX_set1_groups_list(context, "X25519:P-256") &&
	       SSL_CTX_set_num_tickets(context, 0);
}

int soft_tls_keys_open(struct soft_tls_keys **out, const struct rbx_tls_key *key)
{
	struct soft_tls_keys *keys = calloc(1, sizeof(*keys));

	if (!keys)
		return -ENOMEM;
	pthread_mutex_init(&keys->lock, NULL);
	if (soft_tls_keys_add(keys, key)) {
		soft_tls_keys_close(keys);
		return -ENOMEM;
	}
	ERR_set_mark();
	keys->context = SSL_CTX_new(TLS_method());
	if (!keys->context || !context_set(keys->context)) {
		ERR_pop_to_mark();
		soft_tls_keys_close(keys);
		return -EOPNOTSUPP;
	}
	ERR_pop_to_mark();
	SSL_CTX_set_app_data(keys->context, keys);
	*out = keys;
	return 0;
}

void soft_tls_keys_close(struct soft_tls_keys *keys)
{
	if (!keys)
		return;
	SSL_CTX_free(keys->context);
	pthread_mutex_destroy(&keys->lock);
	if (keys->keys)
		OPENSSL_cleanse(keys->keys, keys->room * sizeof(keys->keys[0]));
	free(keys->keys);
	free(keys);
}

/* The memory that the keys leave is wiped, so it is not realloc()'s. */
static bool room_make(struct soft_tls_keys *keys)
{
	uint32_t room = keys->room ? 2 * keys->room : 8;
	struct rbx_tls_key *more;

	if (keys->count < keys->room)
		return true;
	if (room > SOFT_TLS_KEYS_MAX)
		room = SOFT_TLS_KEYS_MAX;
	if (keys->count == room)
		return false;
	more = calloc(room, sizeof(*more));
	if (!more)
		return false;
	if (keys->count) {
		memcpy(more, keys->keys, keys->count * sizeof(*more));
		OPENSSL_cleanse(keys->keys, keys->count * sizeof(*more));
	}
	free(keys->keys);
	keys->keys = more;
	keys->room = room;
	return true;
}

static void key_remove(struct soft_tls_keys *keys, uint32_t i)
{
	keys->count--;
	memmove(&keys->keys[i], &keys->keys[i + 1], (keys->count - i) * sizeof(keys->keys[0]));
}

int soft_tls_keys_add(struct soft_tls_keys *keys, const struct rbx_tls_key *key)
{
	uint32_t i = 0;
	int err = 0;

	pthread_mutex_lock(&keys->lock);
	/* The same key again only becomes the current one. */
	while (i < keys->count && strcmp(keys->keys[i].identity, key->identity))
		i++;
	if (i < keys->count)
		key_remove(keys, i);
	else if (!room_make(keys) && keys->count == SOFT_TLS_KEYS_MAX)
		key_remove(keys, 0); /* the oldest makes room */
	if (keys->count < keys->room)
		keys->keys[keys->count++] = *key;
	else
		err = -ENOMEM;
	pthread_mutex_unlock(&keys->lock);
	return err;
}

SSL *soft_tls_keys_connection(struct soft_tls_keys *keys, BIO *bio, struct soft_tls *tls)
{
	SSL *ssl = SSL_new(keys->context);

	if (!ssl) {
		BIO_free(bio);
		return NULL;
	}
	SSL_set_bio(ssl, bio, bio);
	SSL_set_app_data(ssl, tls);
	return ssl;
}
