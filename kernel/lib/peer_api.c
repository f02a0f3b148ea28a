/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer_api.c - the calls of api_peer.h: a peer with a client of its own.
 *
 * What they do is the session's; here what a module says is checked, and the client
 * that a volume would bring is made. A link is a data queue pair of the session like
 * those of the peer: it is attached with the same proof, and the server ends it when
 * it ends them.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "kernel/api_peer.h"
#include "kernel/lib/address.h"
#include "kernel/lib/peer.h"

static_assert(RBX_MESSAGE_BYTES_MAX == RBX_WIRE_LETTER_BYTES_MAX,
	      "a message is a letter");

/* Room for "[address%scope]:port". */
#define NAME_BYTES_MAX 80

struct own_client {
	struct rbx_client client;
	void *secret; /* a copy of it */
};

/* ---- Connecting ----------------------------------------------------------------*/

static void own_client_free(struct own_client *own)
{
	kfree_sensitive(own->secret);
	kfree(own);
}

static struct own_client *
own_client_make(const struct rbx_peer_options *options)
{
	struct own_client *own = kzalloc(sizeof(*own), GFP_KERNEL);

	if (!own || !options->secret)
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
				  options->secret_bytes))
		return -EINVAL;
	err = address_of(options, &address);
	if (err)
		return err;
	own = own_client_make(options);
	if (!own)
		return -ENOMEM;
	client_options.secret =
		(struct rbx_root){ own->secret, options->secret_bytes };
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

void rbx_peer_disconnect(struct rbx_peer *peer)
{
	struct own_client *own =
		container_of(peer->client, struct own_client, client);

	rbx_peer_close(peer);
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
	return rbx_session_letter_submit(peer->session, data, length, done,
					 user);
}
EXPORT_SYMBOL_GPL(rbx_message_submit);

int rbx_message_send(struct rbx_peer *peer, const void *data, size_t length)
{
	if (length > RBX_MESSAGE_BYTES_MAX)
		return -EINVAL;
	return rbx_session_letter_send(peer->session, data, length);
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

int rbx_borrow(struct rbx_peer *peer, struct rbx_remote *remote)
{
	struct rbx_loan loan;
	int err = rbx_session_map(peer->session, &loan);

	if (err)
		return err;
	*remote = (struct rbx_remote){
		.address = loan.remote_addr,
		.length_bytes = rbx_session_slab_bytes(peer->session),
		.rkey = loan.rkey,
		.slab_id = loan.slab_id,
		.epoch = loan.epoch,
	};
	return 0;
}
EXPORT_SYMBOL_GPL(rbx_borrow);

int rbx_return(struct rbx_peer *peer, const struct rbx_remote *remote)
{
	const struct rbx_loan loan = {
		.slab_id = remote->slab_id,
		.epoch = remote->epoch,
	};
	int err = rbx_session_unmap(peer->session, &loan);

	return err == -EPERM ? -ESTALE : err; /* it is somebody else's by now */
}
EXPORT_SYMBOL_GPL(rbx_return);

/* ---- Plain verbs -------------------------------------------------------------------*/

struct rbx_verbs_link {
	struct rbx_ib_conn conn;
	struct rbx_context *ctx; /* held */
};

/* Its owner sees it by what is flushed. */
static void link_ended(struct rbx_ib_conn *conn)
{
}

struct ib_pd *rbx_peer_pd(const struct rbx_peer *peer)
{
	return peer->ctx->pd;
}
EXPORT_SYMBOL_GPL(rbx_peer_pd);

int rbx_verbs_link_open(struct rbx_peer *peer, struct ib_qp_init_attr *init,
			struct rbx_verbs_link **out)
{
	struct rbx_verbs_link *link = kzalloc(sizeof(*link), GFP_KERNEL);
	int err;

	if (!link)
		return -ENOMEM;
	link->ctx = peer->ctx;
	err = rbx_context_hold(link->ctx, NULL);
	if (err)
		goto out_free;
	err = rbx_session_connect_qp(peer->session, &link->conn, init,
				     link_ended, 0);
	if (err)
		goto out_release;
	*out = link;
	return 0;

out_release:
	rbx_ib_conn_destroy(&link->conn);
	rbx_context_release(link->ctx);
out_free:
	kfree(link);
	return err;
}
EXPORT_SYMBOL_GPL(rbx_verbs_link_open);

struct ib_qp *rbx_verbs_link_qp(const struct rbx_verbs_link *link)
{
	return link->conn.id->qp;
}
EXPORT_SYMBOL_GPL(rbx_verbs_link_qp);

void rbx_verbs_link_close(struct rbx_verbs_link *link)
{
	int err = rbx_ib_conn_drain(&link->conn, RBX_IB_DRAIN_MS);

	rbx_ib_conn_destroy(&link->conn);
	rbx_context_release(link->ctx);
	/* What has not come back may lie in the owner's completion queues, and
	 * speaks of this memory: it is not given to anybody else. */
	if (!err)
		kfree(link);
}
EXPORT_SYMBOL_GPL(rbx_verbs_link_close);
