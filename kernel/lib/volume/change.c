/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * change.c - changes options of a volume while it is open: the peer timeout and the secret.
 *
 * Whoever adds a server uses both. So they are changed under add_lock, and it is waited for a
 * server that is being connected, until a signal comes.
 */
#include <linux/export.h>
#include <linux/slab.h>

#include "kernel/lib/volume/volume.h"

int rbx_volume_set_peer_timeout(struct rbx_volume *volume, u32 peer_timeout_ms)
{
	struct rbx_client *client;

	if (rbx_client_bad_option(peer_timeout_ms, NULL, 0, NULL))
		return -EINVAL;
	if (mutex_lock_interruptible(&volume->add_lock))
		return -EINTR;
	for (client = &volume->client; client; client = rbx_client_next(client)) {
		client->options.peer_timeout_ms = peer_timeout_ms;
		RBX_STORE_RELAXED(&client->sessions.silence_ms, peer_timeout_ms / 2);
	}
	rbx_volume_servers_set_timeout(&volume->control, peer_timeout_ms);
	mutex_unlock(&volume->add_lock);
	return 0;
}
EXPORT_SYMBOL_GPL(rbx_volume_set_peer_timeout);

/* Sessions that are open have keys of their own (client/session.h). */
int rbx_volume_set_secret(struct rbx_volume *volume, const void *secret, size_t secret_bytes)
{
	struct rbx_client *client;
	void *copy;

	if (!secret || rbx_client_bad_option(RBX_PEER_TIMEOUT_MS_MIN, secret, secret_bytes, NULL))
		return -EINVAL;
	copy = kmemdup(secret, secret_bytes, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	if (mutex_lock_interruptible(&volume->add_lock)) {
		kfree_sensitive(copy);
		return -EINTR;
	}
	swap(volume->secret, copy);
	for (client = &volume->client; client; client = rbx_client_next(client)) {
		client->sessions.secret = (struct rbx_root){ volume->secret, secret_bytes };
		client->options.secret = client->sessions.secret;
	}
	volume->may_be_far = true;
	mutex_unlock(&volume->add_lock);
	kfree_sensitive(copy);
	return 0;
}
EXPORT_SYMBOL_GPL(rbx_volume_set_secret);
