/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tls_keys.h - what tls_keys.c has for tls.c.
 */
#ifndef SOFT_TLS_KEYS_H
#define SOFT_TLS_KEYS_H

#include <openssl/ssl.h>

#include "tls.h"

/* A connection with these keys and this BIO, which it owns. NULL: no memory. */
SSL *soft_tls_keys_connection(struct soft_tls_keys *keys, BIO *bio, struct soft_tls *tls);
/* The peer named a key that is not ours. */
void soft_tls_unknown_identity(struct soft_tls *tls);
/* RBX_TLS_IDENTITY_MAX bytes that live as long as the connection. */
char *soft_tls_identity(struct soft_tls *tls);

#endif
