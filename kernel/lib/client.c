/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * client.c - the users of a context: volumes, and the peers and endpoints of a module.
 * See context.h.
 */
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "client/connection.h"
#include "kernel/fabric_ib/conn.h"
#include "kernel/lib/context.h"

#define RESOLVE_MS 2000

#define SECRET_BYTES_MIN 16u /* wire/PROTOCOL.md, "Authentication" */
#define SECRET_BYTES_MAX 4096u

/* It is the name of a secret, so without one it means nothing. */
static bool credential_is_bad(const char *credential, const void *secret)
{
	char name[RBX_CREDENTIAL_BYTES] = "";

	return strscpy(name, credential, sizeof(name)) < 0 || !secret ||
	       !rbx_credential_makes_sense(name);
}

const char *rbx_client_bad_option(uint32_t peer_timeout_ms, const void *secret,
				  size_t secret_bytes, const char *credential)
{
	if (peer_timeout_ms < RBX_PEER_TIMEOUT_MS_MIN)
		return "peer_timeout_ms";
	if (secret && (secret_bytes < SECRET_BYTES_MIN ||
		       secret_bytes > SECRET_BYTES_MAX))
		return "secret_bytes";
	if (credential && *credential && credential_is_bad(credential, secret))
		return "credential";
	return NULL;
}

int rbx_client_open_on(struct rbx_client *client,
		       const struct rbx_client_options *options,
		       struct ib_device *device)
{
	int err;

	client->first = client;
	client->next = NULL;
	mutex_init(&client->next_lock);
	client->is_stopped = false;
	init_waitqueue_head(&client->stopped);
	client->options = *options;
	client->sessions = (struct rbx_sessions){
		.secret = options->secret,
		.silence_ms = options->peer_timeout_ms / 2,
	};
	memcpy(client->sessions.credential, options->credential,
	       sizeof(options->credential));
	err = rbx_context_join(client, device);
	ib_device_put(device); /* the context holds it as well */
	return err;
}

static void no_connection_to_end(struct rbx_ib_conn *conn)
{
}

/* Finds the device that leads to an address, and holds it. */
static int device_find(struct sockaddr_storage *address,
		       struct ib_device **device)
{
	struct rbx_ib_conn conn;
	int err = rbx_ib_conn_resolve(&conn, &init_net, address,
				      no_connection_to_end, RESOLVE_MS);

	if (!err && !ib_device_try_get(conn.id->device))
		err = -ENODEV;
	if (!err)
		*device = conn.id->device;
	rbx_ib_conn_destroy(&conn);
	return err;
}

int rbx_client_open(struct rbx_client *client,
		    const struct rbx_client_options *options,
		    struct sockaddr_storage *address)
{
	struct ib_device *device;
	int err = device_find(address, &device);

	return err ? err : rbx_client_open_on(client, options, device);
}

/* ---- Several devices of one owner ------------------------------------------------*/

/* Takes the device, even if it fails. */
static int next_make(struct rbx_client *first, struct ib_device *device, struct rbx_client **out)
{
	struct rbx_client *last = first, *next = kzalloc(sizeof(*next), GFP_KERNEL);
	u32 count;
	int err;

	lockdep_assert_held(&first->next_lock);
	for (count = 1; last->next; count++)
		last = last->next;
	if (!next || count == RBX_CLIENT_DEVICES_MAX) {
		ib_device_put(device);
		err = next ? -EXDEV : -ENOMEM;
	} else {
		err = rbx_client_open_on(next, &first->options, device);
	}
	if (err) {
		kfree(next);
		return err;
	}
	next->first = first;
	smp_store_release(&last->next, next); /* pairs with rbx_client_next() */
	*out = next;
	return 0;
}

int rbx_client_of_address(struct rbx_client *first, struct sockaddr_storage *address,
			  struct rbx_client **client)
{
	struct ib_device *device;
	int err = device_find(address, &device);

	if (err)
		return err;
	mutex_lock(&first->next_lock);
	*client = rbx_context_client(first, device);
	if (*client)
		ib_device_put(device);
	else
		err = next_make(first, device, client);
	mutex_unlock(&first->next_lock);
	return err;
}

/* ---- Stop and close ---------------------------------------------------------------*/

/* Pauses, until a signal comes or the owner is stopped. */
int rbx_sessions_pause(struct rbx_sessions *sessions, uint64_t pause_ns)
{
	struct rbx_client *first = rbx_client_of_sessions(sessions)->first;

	return wait_event_interruptible_timeout(
		       first->stopped, READ_ONCE(first->is_stopped),
		       (long)nsecs_to_jiffies64(pause_ns) + 1) ?
		       -EINTR :
		       0;
}

void rbx_client_stop(struct rbx_client *first)
{
	WRITE_ONCE(first->is_stopped, true);
	wake_up_all(&first->stopped);
}

void rbx_client_close(struct rbx_client *first)
{
	struct rbx_client *client = first->next, *next;

	for (; client; client = next) {
		next = client->next;
		rbx_context_part(client);
		kfree(client);
	}
	rbx_context_part(first);
}
