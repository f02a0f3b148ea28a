/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * integrity.c - see integrity.h.
 */
#include "lib/integrity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "include/rdmabox/integrity.h"
#include "lib/error.h"

#define KEY_LABEL "rdmabox tls"
#define IDENTITY_LABEL "identity"
#define IDENTITY_MAC_BYTES 8u

void rbx_tls_key_of_root(struct rbx_root secret, const char *credential,
			 struct rbx_tls_key *key)
{
	uint8_t mac[RBX_HMAC_BYTES];
	size_t length;

	RBX_STATIC_ASSERT(RBX_TLS_KEY_BYTES == RBX_HMAC_BYTES, "the key is a whole HMAC");
	rbx_port_hmac_sha256(secret.bytes, secret.length_bytes, (const uint8_t *)KEY_LABEL,
			     strlen(KEY_LABEL), key->bytes);
	rbx_port_hmac_sha256(key->bytes, sizeof(key->bytes), (const uint8_t *)IDENTITY_LABEL,
			     strlen(IDENTITY_LABEL), mac);
	length = (size_t)snprintf(key->identity, sizeof(key->identity), "%.64s:", credential);
	for (uint32_t i = 0; i < IDENTITY_MAC_BYTES; i++)
		length += (size_t)snprintf(key->identity + length,
					   sizeof(key->identity) - length, "%02x", mac[i]);
}

static int tls_check(const struct rbx_tls_key *key, const struct rbx_fabric_choice *choice)
{
	if (!choice->ops->add_tls_key)
		return rbx_error(-EINVAL,
				 "integrity=tls: only the soft fabric can; with %s the NIC "
				 "moves the data: use IPsec or MACsec on the network, or "
				 "fabric=soft",
				 choice->ops->name);
	if (!key)
		return rbx_error(-EINVAL, "integrity=tls needs a secret; give the file with it "
					  "(secret_file, --secret-file)");
	return 0;
}

int rbx_integrity_choose(uint32_t integrity, const struct rbx_tls_key *key,
			 struct rbx_fabric_choice *choice)
{
	enum rbx_tls_use use = RBX_TLS_NEVER;
	int err;

	if (integrity == RBX_INTEGRITY_TLS) {
		err = tls_check(key, choice);
		if (err)
			return err;
		use = RBX_TLS_ALWAYS;
	} else if (integrity == RBX_INTEGRITY_DEFAULT && key && choice->ops->add_tls_key) {
		use = RBX_TLS_BEYOND_LOOPBACK;
	}
	choice->options.tls = use;
	if (use != RBX_TLS_NEVER)
		choice->options.tls_key = key;
	return 0;
}
