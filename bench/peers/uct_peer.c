/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The UCX peer on verbs: zero-copy puts and gets at UCX's transport level, UCT,
 * over a reliable connection.
 *
 * UCX's upper level, UCP, needs a second transport to make its connections, and finds none
 * that works on Soft-RoCE. So this calls what UCP would call. A request is one
 * uct_ep_put_zcopy or uct_ep_get_zcopy, and its completion is that of the reliable
 * connection: acknowledged by the other side's device.
 *
 * Two endpoints are connected by their addresses, which are sent over a plain TCP socket
 * together with the memory's packed key. The socket stays open: its end tells the server that
 * the client has left. The child that serves (ucx_server.c) sleeps on it, because the device
 * does the puts and gets.
 *
 * A broken connection completes requests with an error, or lets them stall
 * until the load gives up.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uct/api/version.h>
#include <unistd.h>

#include "peer.h"
#include "uct_device.h"
#include "ucx_server.h"
#include "ucx_socket.h"
#include "ucx_status.h"

/* Bounds of UCT's addresses and packed keys. */
#define BLOB_BYTES_MAX 256

const struct peer_traits peer_traits = {
	.fabrics = { "verbs" },
	.chain_max = 1,
};

/* The state of a request, found by its completion. */
struct slot {
	uct_completion_t completion;
	struct peer *peer;
	uint32_t index;
};

struct peer {
	struct uct_device device;
	uct_ep_h ep;
	uct_mem_h load_memory;
	uct_rkey_bundle_t rkey;
	int socket;
	int event_fd;
	bool armed;
	struct lent_memory lent;
	uint32_t block_bytes;
	struct slot slots[PEER_DEPTH_MAX];
	struct peer_done done[PEER_DEPTH_MAX];
	uint32_t done_count;
};

void peer_fabric_name(const struct peer_options *options, char *name, size_t len)
{
	snprintf(name, len, "uct-%s %d.%d", options->fabric, UCT_VERNO_MAJOR, UCT_VERNO_MINOR);
}

static int endpoint_create(struct uct_device *device, uct_ep_h *ep)
{
	uct_ep_params_t params = {
		.field_mask = UCT_EP_PARAM_FIELD_IFACE,
		.iface = device->iface,
	};

	return error_from_ucs(uct_ep_create(&params, ep));
}

/* Both sides send the addresses of device and endpoint, then connect to the other's. */
static int endpoint_connect(struct uct_device *device, uct_ep_h ep, int fd)
{
	uint8_t device_address[BLOB_BYTES_MAX], ep_address[BLOB_BYTES_MAX];
	int err;

	if (device->attr.device_addr_len > sizeof(device_address) ||
	    device->attr.ep_addr_len > sizeof(ep_address))
		return -EPROTO;
	err = error_from_ucs(uct_iface_get_device_address(device->iface, (void *)device_address));
	if (!err)
		err = error_from_ucs(
			uct_ep_get_address(ep, (void *)ep_address));
	if (!err)
		err = socket_send_blob(fd, device_address, device->attr.device_addr_len);
	if (!err)
		err = socket_send_blob(fd, ep_address,
				       device->attr.ep_addr_len);
	if (!err)
		err = socket_receive_blob(fd, device_address, sizeof(device_address));
	if (!err)
		err = socket_receive_blob(fd, ep_address, sizeof(ep_address));
	if (!err)
		err = error_from_ucs(uct_ep_connect_to_ep(ep, (void *)device_address,
							  (void *)ep_address));
	return err;
}

static int lend_memory(struct uct_device *device, uct_mem_h handle, int fd, void *memory,
		       size_t size_bytes)
{
	struct lent_memory lent = {
		.address = (uintptr_t)memory,
		.size_bytes = size_bytes,
	};
	uint8_t rkey[BLOB_BYTES_MAX];
	int err;

	if (device->md_attr.rkey_packed_size > sizeof(rkey))
		return -EPROTO;
	err = error_from_ucs(uct_md_mkey_pack(device->md, handle, rkey));
	if (!err)
		err = socket_send(fd, &lent, sizeof(lent));
	return err ? err : socket_send_blob(fd, rkey, device->md_attr.rkey_packed_size);
}

static void serve_until_end(int fd)
{
	struct pollfd waiting = { .fd = fd, .events = POLLIN };

	while (!peer_stop) {
		if (poll(&waiting, 1, PEER_WAIT_LIMIT_MS) > 0 && socket_has_ended(fd))
			return;
	}
}

/* The whole run of a child: lends @memory to the client behind @fd until it leaves. */
static int serve_client(int fd, void *memory, size_t size_bytes)
{
	struct uct_device device = { 0 };
	uct_mem_h handle;
	uct_ep_h ep;
	int err;

	err = uct_device_open(&device);
	if (err)
		goto out_close_device;
	err = error_from_ucs(uct_md_mem_reg(device.md, memory, size_bytes, UCT_MD_MEM_ACCESS_RMA,
					    &handle));
	if (err)
		goto out_close_device;
	err = endpoint_create(&device, &ep);
	if (err)
		goto out_unregister;
	err = endpoint_connect(&device, ep, fd);
	if (!err)
		err = lend_memory(&device, handle, fd, memory, size_bytes);
	if (!err)
		serve_until_end(fd);
	uct_ep_destroy(ep);
out_unregister:
	uct_md_mem_dereg(device.md, handle);
out_close_device:
	uct_device_close(&device);
	return err;
}

int peer_serve(const struct peer_options *options)
{
	return ucx_serve(options, serve_client);
}

static int receive_lent_memory(struct peer *peer)
{
	uint8_t rkey[BLOB_BYTES_MAX];
	int err = socket_receive(peer->socket, &peer->lent, sizeof(peer->lent));

	if (!err)
		err = socket_receive_blob(peer->socket, rkey, sizeof(rkey));
	return err ? err : error_from_ucs(uct_rkey_unpack(peer->device.component, rkey,
							  &peer->rkey));
}

static void request_done(uct_completion_t *completion)
{
	struct slot *slot = (struct slot *)completion;
	struct peer *peer = slot->peer;

	peer->done[peer->done_count++] = (struct peer_done){
		.slot = slot->index,
		.status = error_from_ucs(completion->status),
	};
}

static int wait_prepare(struct peer *peer, const struct peer_options *options)
{
	if (!options->wait_event)
		return 0;
	if (!(peer->device.attr.cap.event_flags & UCT_IFACE_FLAG_EVENT_FD))
		return -EOPNOTSUPP;
	return error_from_ucs(uct_iface_event_fd_get(peer->device.iface, &peer->event_fd));
}

int peer_connect(const struct peer_options *options, struct peer **connected)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	uint32_t i;
	int err;

	if (!peer)
		return -ENOMEM;
	peer->block_bytes = options->block_bytes;
	for (i = 0; i < PEER_DEPTH_MAX; i++)
		peer->slots[i] = (struct slot){ .peer = peer, .index = i };
	peer->socket = socket_connect(options);
	err = peer->socket < 0 ? peer->socket : uct_device_open(&peer->device);
	if (!err)
		err = wait_prepare(peer, options);
	if (!err)
		err = endpoint_create(&peer->device, &peer->ep);
	if (!err)
		err = endpoint_connect(&peer->device, peer->ep, peer->socket);
	if (!err)
		err = receive_lent_memory(peer);
	if (!err && peer->lent.size_bytes < options->volume_bytes)
		err = -ENOSPC;
	if (err) {
		peer_disconnect(peer);
		return err;
	}
	*connected = peer;
	return 0;
}

int peer_register(struct peer *peer, void *memory, size_t size_bytes)
{
	return error_from_ucs(uct_md_mem_reg(peer->device.md, memory, size_bytes,
					     UCT_MD_MEM_ACCESS_RMA, &peer->load_memory));
}

int peer_post(struct peer *peer, uint32_t index, bool write, void *buf, uint64_t offset_bytes)
{
	uint64_t remote = peer->lent.address + offset_bytes;
	struct slot *slot = &peer->slots[index];
	uct_iov_t iov = {
		.buffer = buf,
		.length = peer->block_bytes,
		.memh = peer->load_memory,
		.count = 1,
	};
	ucs_status_t status;

	slot->completion = (uct_completion_t){ .func = request_done, .count = 1 };
	status = write ? uct_ep_put_zcopy(peer->ep, &iov, 1, remote, peer->rkey.rkey,
					  &slot->completion) :
			 uct_ep_get_zcopy(peer->ep, &iov, 1, remote, peer->rkey.rkey,
					  &slot->completion);
	if (status == UCS_INPROGRESS)
		return 0;
	if (status == UCS_ERR_NO_RESOURCE)
		return -EAGAIN;
	if (status != UCS_OK)
		return error_from_ucs(status);
	/* It is done already, and the completion is not called. */
	request_done(&slot->completion);
	return 0;
}

/* Each put and get was sent already. */
int peer_post_end(struct peer *peer)
{
	(void)peer;
	return 0;
}

int peer_poll(struct peer *peer, struct peer_done done[PEER_DEPTH_MAX])
{
	uint32_t count;

	uct_worker_progress(peer->device.worker);
	count = peer->done_count;
	memcpy(done, peer->done, count * sizeof(*done));
	peer->done_count = 0;
	return count;
}

/*
 * Arms at one call and sleeps at the next: the load polls in between, and so finds what
 * completed before the queue was armed. Arming fails while old events are there, and removes
 * them.
 */
bool peer_wait(struct peer *peer)
{
	struct pollfd event = { .fd = peer->event_fd, .events = POLLIN };

	if (!peer->armed) {
		peer->armed = uct_iface_event_arm(peer->device.iface, UCT_EVENT_SEND_COMP) ==
			      UCS_OK;
		return true;
	}
	peer->armed = false;
	return poll(&event, 1, PEER_WAIT_LIMIT_MS) > 0;
}

void peer_disconnect(struct peer *peer)
{
	if (peer->rkey.handle || peer->rkey.rkey)
		uct_rkey_release(peer->device.component, &peer->rkey);
	if (peer->ep)
		uct_ep_destroy(peer->ep);
	if (peer->load_memory)
		uct_md_mem_dereg(peer->device.md, peer->load_memory);
	uct_device_close(&peer->device);
	if (peer->socket >= 0)
		close(peer->socket);
	free(peer);
}
