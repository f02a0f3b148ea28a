/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tls_key.h - a key for connections under TLS, and which connections are.
 *
 * Both ends have the key before they connect; it is an external pre-shared key of TLS 1.3
 * (RFC 8446, 4.2.11). Only a device whose table has add_tls_key() knows TLS.
 */
#ifndef RBX_FABRIC_TLS_KEY_H
#define RBX_FABRIC_TLS_KEY_H

#include <stdint.h>

#define RBX_TLS_KEY_BYTES 32 /* as many as SHA-256, with which it is used, has */
#define RBX_TLS_IDENTITY_MAX 128

struct rbx_tls_key {
	/* Names the key, in clear text: the acceptor finds by it which of its keys is meant. */
	char identity[RBX_TLS_IDENTITY_MAX];
	uint8_t bytes[RBX_TLS_KEY_BYTES];
};

/* Both ends of a connection must come to the same answer; if not, it is refused. */
enum rbx_tls_use {
	RBX_TLS_NEVER,
	RBX_TLS_BEYOND_LOOPBACK, /* unless the acceptor's address is of this machine only */
	RBX_TLS_ALWAYS, /* local sockets are never: what they carry does not leave the host */
};

#endif
