/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * integrity.h - makes the option `integrity` the options of a device, and the secret its key.
 */
#ifndef RBX_LIB_INTEGRITY_H
#define RBX_LIB_INTEGRITY_H

#include "lib/fabric_choice.h"
#include "lib/secret.h"

/*
 * The key of a secret for TLS. credential: the name that the secret goes by, or "". The
 * identity of the key tells one secret of a name from another, and nothing of the secret
 * itself.
 */
void rbx_tls_key_of_root(struct rbx_root secret, const char *credential,
			 struct rbx_tls_key *key);

/*
 * Sets the options of TLS in a choice, whose fabric is known. key: that of a secret, which
 * lives until the device is open; NULL: there is no secret. 0, or -EINVAL: TLS is asked for
 * and cannot be had; sets rbx_last_error().
 */
int rbx_integrity_choose(uint32_t integrity, const struct rbx_tls_key *key,
			 struct rbx_fabric_choice *choice);

#endif
