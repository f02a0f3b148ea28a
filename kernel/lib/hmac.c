/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hmac.c - HMAC-SHA256 by the kernel's crypto API.
 *
 * The transform is allocated when the module is loaded, since a session may have to be
 * resumed while memory is short. It holds one key at a time, so there is a lock. Messages are
 * sealed under spinlocks, so a proof is made under one too.
 */
#include <crypto/hash.h>
#include <linux/random.h>
#include <linux/spinlock.h>

#include "core/port.h"
#include "kernel/lib/hmac.h"

static struct crypto_shash *hmac;
/* Guards the key in the transform. */
static DEFINE_SPINLOCK(hmac_lock);

int rbx_hmac_open(void)
{
	hmac = crypto_alloc_shash("hmac(sha256)", 0, 0);
	if (IS_ERR(hmac))
		return PTR_ERR(hmac);
	if (crypto_shash_digestsize(hmac) == RBX_HMAC_BYTES)
		return 0;
	crypto_free_shash(hmac);
	return -EINVAL;
}

void rbx_hmac_close(void)
{
	crypto_free_shash(hmac);
}

void rbx_port_hmac_sha256(const uint8_t *key, size_t key_bytes,
			  const uint8_t *text, size_t text_bytes,
			  uint8_t mac[RBX_HMAC_BYTES])
{
	unsigned long flags;
	int err;

	spin_lock_irqsave(&hmac_lock, flags);
	err = crypto_shash_setkey(hmac, key, key_bytes);
	if (!err)
		err = crypto_shash_tfm_digest(hmac, text, text_bytes, mac);
	spin_unlock_irqrestore(&hmac_lock, flags);
	/* A peer without a valid proof must never be accepted. */
	if (WARN_ONCE(err, "rdmabox: HMAC-SHA256 fails: %d\n", err))
		get_random_bytes(mac, RBX_HMAC_BYTES);
}
