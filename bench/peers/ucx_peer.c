/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The UCX peer: one-sided reads and writes over UCX's tcp transport.
 *
 * A read is one ucp_get_nbx and completes by itself. The completion of a ucp_put_nbx means
 * only that the buffer may be used again; a flush tells that the data is in its place. So
 * puts are flushed in groups: the posts of one pass of the load, up to FLUSH_GROUP of them,
 * form a group, one flush follows it, and the flush's completion completes every request of
 * the group.
 *
 * The addresses of the server's worker and memory and the memory's packed key are sent over a
 * plain TCP socket, which stays open: its end tells the server that the client has left. The
 * child that serves (ucx_server.c) spins in ucp_worker_progress, because tcp does nothing by
 * itself.
 *
 * A broken connection fails the outstanding requests. If UCX reports nothing, they stall
 * until the load gives up.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include "peer.h"
#include "ucx_server.h"
#include "ucx_socket.h"
#include "ucx_status.h"

/*
 * Puts that share a flush. In the peer's favour: at depth 32, groups of 32 gave
 * about 209,000/s; single undisturbed runs of 4, 8 and 16 gave 182,000, 192,000
 * and 200,000/s. A flush for each put was seen only on a busy machine, where
 * its best moments stayed below 125,000/s.
 */
#define FLUSH_GROUP 32
/* A look at the socket is a system call; it can wait this many passes. */
#define SERVE_TURNS_PER_LOOK 4096
/* Bounds of UCP's worker addresses and packed keys. */
#define ADDRESS_BYTES_MAX 65536
#define RKEY_BYTES_MAX 4096
#define NO_SLOT UINT32_MAX

const struct peer_traits peer_traits = {
	.fabrics = { "tcp" },
	.chain_max = 1,
};

/* The state of a request, found by its callback. */
struct slot {
	struct peer *peer;
	uint32_t next_in_group;
	uint32_t index;
};

struct peer {
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_ep_h ep;
	ucp_rkey_h rkey;
	int socket;
	struct lent_memory lent;
	uint32_t block_bytes;
	struct slot slots[PEER_DEPTH_MAX];
	uint32_t group;			/* first slot of the present group of puts */
	uint32_t group_count;
	struct peer_done done[PEER_DEPTH_MAX];
	uint32_t done_count;
};

void peer_fabric_name(const struct peer_options *options, char *name, size_t len)
{
	unsigned int major, minor, release;

	ucp_get_version(&major, &minor, &release);
	snprintf(name, len, "ucx-%s %u.%u", options->fabric, major, minor);
}

/*
 * Finds the network device that has the local address of @fd. Empty if none has it, for
 * example for 0.0.0.0.
 */
static void device_of_socket(int fd, char *device, size_t len)
{
	struct sockaddr_in local = { 0 };
	socklen_t local_len = sizeof(local);
	struct ifaddrs *all, *one;

	*device = 0;
	if (getsockname(fd, (struct sockaddr *)&local, &local_len) || getifaddrs(&all))
		return;
	for (one = all; one; one = one->ifa_next) {
		const struct sockaddr_in *address = (struct sockaddr_in *)one->ifa_addr;

		if (address && address->sin_family == AF_INET &&
		    address->sin_addr.s_addr == local.sin_addr.s_addr)
			snprintf(device, len, "%s", one->ifa_name);
	}
	freeifaddrs(all);
}

/*
 * Only tcp, because UCX would use shared memory between two processes of one host. Only the
 * device of @fd, because UCX would listen on all of them.
 */
static int context_open(int fd, ucp_context_h *context)
{
	char device[64];
	ucp_params_t params = {
		.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_RMA,
	};
	ucp_config_t *config;
	ucs_status_t status;

	status = ucp_config_read(NULL, NULL, &config);
	if (status != UCS_OK)
		return error_from_ucs(status);
	status = ucp_config_modify(config, "TLS", "tcp");
	device_of_socket(fd, device, sizeof(device));
	if (status == UCS_OK && *device)
		status = ucp_config_modify(config, "NET_DEVICES", device);
	if (status == UCS_OK)
		status = ucp_init(&params, config, context);
	ucp_config_release(config);
	return error_from_ucs(status);
}

static int worker_open(ucp_context_h context, ucp_worker_h *worker)
{
	ucp_worker_params_t params = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SINGLE,
	};

	return error_from_ucs(ucp_worker_create(context, &params, worker));
}

/* Sends a client all it needs to reach @memory. */
static int lend_memory(int fd, ucp_context_h context, ucp_worker_h worker, ucp_mem_h memory)
{
	ucp_mem_attr_t attr = {
		.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH,
	};
	ucp_address_t *worker_address;
	size_t worker_address_len, rkey_len;
	struct lent_memory lent;
	void *rkey;
	int err;

	err = error_from_ucs(ucp_mem_query(memory, &attr));
	if (err)
		return err;
	err = error_from_ucs(ucp_worker_get_address(worker, &worker_address, &worker_address_len));
	if (err)
		return err;
	err = error_from_ucs(ucp_rkey_pack(context, memory, &rkey, &rkey_len));
	if (err)
		goto out_release_address;
	lent = (struct lent_memory){
		.address = (uintptr_t)attr.address,
		.size_bytes = attr.length,
	};
	err = socket_send(fd, &lent, sizeof(lent));
	if (!err)
		err = socket_send_blob(fd, worker_address, worker_address_len);
	if (!err)
		err = socket_send_blob(fd, rkey, rkey_len);
	ucp_rkey_buffer_release(rkey);
out_release_address:
	ucp_worker_release_address(worker, worker_address);
	return err;
}

static void serve_until_end(int fd, ucp_worker_h worker)
{
	uint64_t turns;

	for (turns = 0; !peer_stop; turns++) {
		ucp_worker_progress(worker);
		if (turns % SERVE_TURNS_PER_LOOK == 0 && socket_has_ended(fd))
			return;
	}
}

/* The whole run of a child: lends @memory to the client behind @fd until it leaves. */
static int serve_client(int fd, void *memory, size_t size_bytes)
{
	ucp_mem_map_params_t params = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
		.address = memory,
		.length = size_bytes,
	};
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_mem_h handle;
	int err;

	err = context_open(fd, &context);
	if (err)
		return err;
	err = error_from_ucs(ucp_mem_map(context, &params, &handle));
	if (err)
		goto out_close_context;
	err = worker_open(context, &worker);
	if (err)
		goto out_unmap_memory;
	err = lend_memory(fd, context, worker, handle);
	if (!err)
		serve_until_end(fd, worker);
	ucp_worker_destroy(worker);
out_unmap_memory:
	ucp_mem_unmap(context, handle);
out_close_context:
	ucp_cleanup(context);
	return err;
}

int peer_serve(const struct peer_options *options)
{
	return ucx_serve(options, serve_client);
}

static int receive_lent_memory(struct peer *peer)
{
	uint8_t address[ADDRESS_BYTES_MAX], rkey[RKEY_BYTES_MAX];
	ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
		.address = (ucp_address_t *)address,
	};
	int err;

	err = socket_receive(peer->socket, &peer->lent, sizeof(peer->lent));
	if (!err)
		err = socket_receive_blob(peer->socket, address, sizeof(address));
	if (!err)
		err = socket_receive_blob(peer->socket, rkey, sizeof(rkey));
	if (!err)
		err = error_from_ucs(ucp_ep_create(peer->worker, &params, &peer->ep));
	if (!err)
		err = error_from_ucs(ucp_ep_rkey_unpack(peer->ep, rkey, &peer->rkey));
	return err;
}

int peer_connect(const struct peer_options *options, struct peer **connected)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	uint32_t i;
	int err;

	if (!peer)
		return -ENOMEM;
	peer->block_bytes = options->block_bytes;
	peer->group = NO_SLOT;
	for (i = 0; i < PEER_DEPTH_MAX; i++)
		peer->slots[i] = (struct slot){ .peer = peer, .index = i };
	peer->socket = socket_connect(options);
	err = peer->socket < 0 ? peer->socket : context_open(peer->socket, &peer->context);
	if (!err)
		err = worker_open(peer->context, &peer->worker);
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

/* tcp copies from any memory. */
int peer_register(struct peer *peer, void *memory, size_t size_bytes)
{
	(void)peer;
	(void)memory;
	(void)size_bytes;
	return 0;
}

/* Never called: over tcp the load polls. */
bool peer_wait(struct peer *peer)
{
	(void)peer;
	return true;
}

static void slot_done(struct slot *slot, ucs_status_t status)
{
	struct peer *peer = slot->peer;

	peer->done[peer->done_count++] = (struct peer_done){
		.slot = slot->index,
		.status = error_from_ucs(status),
	};
}

static void get_done(void *request, ucs_status_t status, void *arg)
{
	slot_done(arg, status);
	ucp_request_free(request);
}

/* Completes each request of the group that begins with @slot. */
static void group_done(struct slot *slot, ucs_status_t status)
{
	uint32_t next;

	for (;; slot = &slot->peer->slots[next]) {
		next = slot->next_in_group;
		slot_done(slot, status);
		if (next == NO_SLOT)
			break;
	}
}

static void flush_done(void *request, ucs_status_t status, void *arg)
{
	group_done(arg, status);
	ucp_request_free(request);
}

static int post_get(struct peer *peer, struct slot *slot, void *buf, uint64_t remote)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.send = get_done,
		.user_data = slot,
	};
	ucs_status_ptr_t request;

	request = ucp_get_nbx(peer->ep, buf, peer->block_bytes, remote, peer->rkey, &param);
	if (UCS_PTR_IS_ERR(request))
		return error_from_ucs(UCS_PTR_STATUS(request));
	if (!request)
		slot_done(slot, UCS_OK);
	return 0;
}

static int post_put(struct peer *peer, struct slot *slot, void *buf, uint64_t remote)
{
	ucp_request_param_t param = { 0 };
	ucs_status_ptr_t request;

	request = ucp_put_nbx(peer->ep, buf, peer->block_bytes, remote, peer->rkey, &param);
	if (UCS_PTR_IS_ERR(request))
		return error_from_ucs(UCS_PTR_STATUS(request));
	/* The flush counts for the put: a put that fails later fails its endpoint and the flush. */
	if (request)
		ucp_request_free(request);
	slot->next_in_group = peer->group;
	peer->group = slot->index;
	return ++peer->group_count < FLUSH_GROUP ? 0 : peer_post_end(peer);
}

int peer_post(struct peer *peer, uint32_t index, bool write, void *buf, uint64_t offset_bytes)
{
	struct slot *slot = &peer->slots[index];
	uint64_t remote = peer->lent.address + offset_bytes;

	return write ? post_put(peer, slot, buf, remote) : post_get(peer, slot, buf, remote);
}

/* Flushes the group of puts, if there is one. */
int peer_post_end(struct peer *peer)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.send = flush_done,
	};
	ucs_status_ptr_t request;
	struct slot *first;

	if (peer->group == NO_SLOT)
		return 0;
	first = &peer->slots[peer->group];
	param.user_data = first;
	peer->group = NO_SLOT;
	peer->group_count = 0;
	request = ucp_ep_flush_nbx(peer->ep, &param);
	if (!UCS_PTR_IS_PTR(request))
		group_done(first, UCS_PTR_STATUS(request));
	return 0;
}

int peer_poll(struct peer *peer, struct peer_done done[PEER_DEPTH_MAX])
{
	uint32_t count;

	ucp_worker_progress(peer->worker);
	count = peer->done_count;
	memcpy(done, peer->done, count * sizeof(*done));
	peer->done_count = 0;
	return count;
}

/* Closes the endpoint by force: an orderly close waits for a server that may be dead. */
static void endpoint_close(struct peer *peer)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_EP_CLOSE_FLAG_FORCE,
	};
	ucs_status_ptr_t request = ucp_ep_close_nbx(peer->ep, &param);

	if (!UCS_PTR_IS_PTR(request))
		return;
	while (ucp_request_check_status(request) == UCS_INPROGRESS)
		ucp_worker_progress(peer->worker);
	ucp_request_free(request);
}

void peer_disconnect(struct peer *peer)
{
	if (peer->rkey)
		ucp_rkey_destroy(peer->rkey);
	if (peer->ep)
		endpoint_close(peer);
	if (peer->worker)
		ucp_worker_destroy(peer->worker);
	if (peer->context)
		ucp_cleanup(peer->context);
	if (peer->socket >= 0)
		close(peer->socket);
	free(peer);
}
