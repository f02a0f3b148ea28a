/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remote.c - the calls of api_peer.h: a peer with its own client.
 *
 * They check the arguments of a module, and make the client that a volume would have
 * made. The session does the rest.
 *
 * The module itself writes to borrowed memory, and a server may take the memory back
 * before we notice. If it then lends the same memory anew, operations that still go to
 * the old loan would change the new one. So loans are remembered, and a loan that is a
 * twin of a remembered one is not handed out.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "kernel/api_peer.h"
#include "kernel/lib/address.h"
#include "kernel/lib/peer/peer.h"

static_assert(RBX_MESSAGE_BYTES_MAX == RBX_WIRE_USER_MESSAGE_BYTES_MAX,
	      "a message is a user message");

/* Room for "[address%scope]:port". */
#define NAME_BYTES_MAX 80

struct own_client {
	struct rbx_client client;
	void *secret; /* a copy of it */
	spinlock_t lock; /* guards the list below */
	struct list_head borrowed;
};

struct borrowed {
	struct list_head link;
	struct rbx_loan loan;
};

/* ---- Connecting ----------------------------------------------------------------*/

static void own_client_free(struct own_client *own)
{
	struct borrowed *borrowed, *next;

	list_for_each_entry_safe(borrowed, next, &own->borrowed, link)
		kfree(borrowed);
	kfree_sensitive(own->secret);
	kfree(own);
}

static struct own_client *
own_client_make(const struct rbx_peer_options *options)
{
	struct own_client *own = kzalloc(sizeof(*own), GFP_KERNEL);

	if (!own)
		return NULL;
	spin_lock_init(&own->lock);
	INIT_LIST_HEAD(&own->borrowed);
	if (!options->secret)
		return own;
	own->secret = kmemdup(options->secret, options->secret_bytes,
			      GFP_KERNEL);
	if (own->secret)
		return own;
	kfree(own);
	return NULL;
}

static int address_of(const struct rbx_peer_options *options,
		      struct sockaddr_storage *address)
{
	char text[NAME_BYTES_MAX];
	int err;

	if (!options->server ||
	    strscpy(text, options->server, sizeof(text)) < 0)
		return -EINVAL;
	memset(address, 0, sizeof(*address));
	err = rbx_address_parse(text, address);
	if (err)
		return err;
	if (!options->secret && !options->insecure &&
	    !rbx_address_is_loopback(address))
		return -EPERM;
	return 0;
}

int rbx_peer_connect(const struct rbx_peer_options *options,
		     struct rbx_peer **peer)
{
	struct rbx_client_options client_options = {
		.queue_pairs = 1,
		.peer_timeout_ms = options->peer_timeout_ms,
		.merge = true,
		.chain = true,
	};
	struct sockaddr_storage address;
	struct own_client *own;
	int err;

	if (rbx_client_bad_option(options->peer_timeout_ms, options->secret,
				  options->secret_bytes, options->credential))
		return -EINVAL;
	err = address_of(options, &address);
	if (err)
		return err;
	own = own_client_make(options);
	if (!own)
		return -ENOMEM;
	client_options.secret =
		(struct rbx_root){ own->secret, options->secret_bytes };
	strscpy(client_options.credential, options->credential ?: "",
		sizeof(client_options.credential));
	err = rbx_client_open(&own->client, &client_options, &address);
	if (err)
		goto out_free;
	err = rbx_peer_open(&own->client, &address, NULL, peer);
	if (!err)
		return 0;
	rbx_client_close(&own->client);
out_free:
	own_client_free(own);
	return err;
}
EXPORT_SYMBOL_GPL(rbx_peer_connect);

static struct own_client *own_client_of(const struct rbx_peer *peer)
{
	return container_of(rbx_kernel_peer((struct rbx_peer *)peer)->client,
			    struct own_client, client);
}

void rbx_peer_disconnect(struct rbx_peer *peer)
{
	struct own_client *own = own_client_of(peer);

	rbx_peer_leave(peer);
	rbx_client_close(&own->client);
	own_client_free(own);
}
EXPORT_SYMBOL_GPL(rbx_peer_disconnect);

/* ---- Messages -------------------------------------------------------------------*/

int rbx_message_submit(struct rbx_peer *peer, const void *data, size_t length,
		       void (*done)(int status, void *user), void *user)
{
	if (length > RBX_MESSAGE_BYTES_MAX)
		return -EINVAL;
	return rbx_session_message_submit(peer->session, data, length, done,
					  user);
}
EXPORT_SYMBOL_GPL(rbx_message_submit);

int rbx_message_send(struct rbx_peer *peer, const void *data, size_t length)
{
	if (length > RBX_MESSAGE_BYTES_MAX)
		return -EINVAL;
	return rbx_session_message_send(peer->session, data, length);
}
EXPORT_SYMBOL_GPL(rbx_message_send);

int rbx_peer_on_message(struct rbx_peer *peer,
			void (*message)(struct rbx_peer *peer, const void *data,
					size_t length, void *user),
			void *user)
{
	const struct rbx_session_listener listener = {
		.message = message,
		.peer = peer,
		.user = user,
	};

	return rbx_session_listen(peer->session, &listener);
}
EXPORT_SYMBOL_GPL(rbx_peer_on_message);

/* ---- Borrowed memory ---------------------------------------------------------------*/

/* Remembers a loan, unless it is a twin of a remembered one. Then *over is the one of the
 * two that has ended: the one that was lent first. */
static bool remember(struct rbx_peer *peer, struct borrowed *borrowed,
		     struct rbx_loan *over)
{
	uint64_t slab_bytes = rbx_session_slab_bytes(peer->session);
	struct own_client *own = own_client_of(peer);
	struct borrowed *other;
	bool is_alone = true;

	spin_lock(&own->lock);
	list_for_each_entry(other, &own->borrowed, link) {
		if (!rbx_loan_is_twin(&other->loan, &borrowed->loan, slab_bytes))
			continue;
		*over = other->loan.epoch < borrowed->loan.epoch ?
				other->loan :
				borrowed->loan;
		is_alone = false;
		break;
	}
	if (is_alone)
		list_add(&borrowed->link, &own->borrowed);
	spin_unlock(&own->lock);
	return is_alone;
}

static void forget(struct rbx_peer *peer, const struct rbx_loan *loan)
{
	struct own_client *own = own_client_of(peer);
	struct borrowed *borrowed, *found = NULL;

	spin_lock(&own->lock);
	list_for_each_entry(borrowed, &own->borrowed, link)
		if (borrowed->loan.slab_id == loan->slab_id &&
		    borrowed->loan.epoch == loan->epoch)
			found = borrowed;
	if (found)
		list_del(&found->link);
	spin_unlock(&own->lock);
	kfree(found);
}

int rbx_borrow(struct rbx_peer *peer, struct rbx_remote *remote)
{
	struct borrowed *borrowed = kzalloc(sizeof(*borrowed), GFP_KERNEL);
	struct rbx_loan loan;
	int err;

	if (!borrowed)
		return -ENOMEM;
	err = rbx_session_map(peer->session, &borrowed->loan);
	if (err) {
		kfree(borrowed);
		return err;
	}
	loan = borrowed->loan;
	if (!remember(peer, borrowed, &loan)) {
		(void)rbx_session_unmap(peer->session, &borrowed->loan);
		kfree(borrowed);
		err = -ESTALE;
	}
	*remote = (struct rbx_remote){
		.address = loan.remote_addr,
		.length_bytes = rbx_session_slab_bytes(peer->session),
		.rkey = loan.rkey,
		.slab_id = loan.slab_id,
		.epoch = loan.epoch,
	};
	return err;
}
EXPORT_SYMBOL_GPL(rbx_borrow);

int rbx_return(struct rbx_peer *peer, const struct rbx_remote *remote)
{
	const struct rbx_loan loan = {
		.slab_id = remote->slab_id,
		.epoch = remote->epoch,
	};
	int err = rbx_session_unmap(peer->session, &loan);

	if (err == -EPERM)
		err = -ESTALE; /* it is another client's by now */
	if (!err || err == -ESTALE)
		forget(peer, &loan);
	return err;
}
EXPORT_SYMBOL_GPL(rbx_return);
