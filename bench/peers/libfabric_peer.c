/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The libfabric peer: one-sided reads and writes over the tcp or the verbs
 * provider, connected endpoints (FI_EP_MSG).
 *
 * A request is one fi_readmsg or fi_writemsg. Over tcp writes have FI_DELIVERY_COMPLETE, so
 * that a completion means "placed at the target", as for RDMAbox; by default it means "handed
 * to the socket". The flag is given with each call: as an operation flag of the endpoint the
 * provider accepts and ignores it, and fi_write completes in half a round trip. Over verbs a
 * completion is that of a reliable connection, which means this anyway.
 *
 * The program does what a provider requires: the verbs provider needs the load's buffers
 * registered and remote memory named by its address there, the tcp provider neither. The key,
 * the address and the size are in the private data of the acceptance.
 *
 * The tcp provider has no thread of its own: a target that does not call the library makes no
 * progress. So the server reads its completion queue without pause, and checks the event
 * queue (connections that come and go) once in many passes. Over verbs the device does the
 * work, and the server sleeps between two looks: fi_eq_sread of that provider was seen to use
 * a whole CPU. Each client has an endpoint of its own, which ends with the event that the
 * client has left.
 *
 * A broken connection or a refused key completes requests with an error.
 */
#include <errno.h>
#include <poll.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfabric_link.h"
#include "peer.h"

/* Reading the event queue costs system calls; connections can wait this many passes. */
#define SERVE_TURNS_PER_EVENT 1024
/* Sleep between two looks at an event queue if nothing else is to be done. */
#define EVENT_SLEEP_MS 10

const struct peer_traits peer_traits = {
	.fabrics = { "tcp", "verbs" },
	.chain_max = 1,	/* both providers post each call separately */
};

/* Private data of an accepted connection. Both ends are the same program. */
struct lent_memory {
	uint64_t address;	/* 0 if remote memory is named by its offset */
	uint64_t key;
	uint64_t size_bytes;
};

struct peer {
	struct link link;
	struct fid_mr *mr;		/* of the server, as the two that follow */
	void *memory;
	struct lent_memory lent;
	bool over_verbs;
	struct fid_mr *load_mr;		/* client: of the load's buffers, if needed */
	void *load_desc;
	uint64_t write_flags;
	int event_fd;			/* client: of the completion queue, to sleep on */
	uint32_t block_bytes;
	/* one for each slot; a completion names its slot by its address */
	struct fi_context *contexts;
};

void peer_fabric_name(const struct peer_options *options, char *name, size_t len)
{
	snprintf(name, len, "libfabric-%s %u.%u", options->fabric, FI_MAJOR(fi_version()),
		 FI_MINOR(fi_version()));
}

static void peer_close(struct peer *peer)
{
	/* An endpoint that may use the memory is closed before it. */
	link_close_object(peer->link.ep ? &peer->link.ep->fid : NULL);
	peer->link.ep = NULL;
	link_close_object(peer->mr ? &peer->mr->fid : NULL);
	link_close_object(peer->load_mr ? &peer->load_mr->fid : NULL);
	link_close(&peer->link);
	free(peer->memory);
	free(peer->contexts);
	free(peer);
}

/* Opens what both sides need. */
static int peer_open(const struct peer_options *options, struct peer **opened)
{
	const struct link_options link_options = {
		.fabric = options->fabric,
		.host = options->host,
		.port = options->port,
		.serve = options->serve,
		.caps = FI_MSG | FI_RMA,
		.depth = options->serve ? 0 : options->depth,
		.wait = options->wait_event ? FI_WAIT_FD : FI_WAIT_NONE,
	};
	struct peer *peer = calloc(1, sizeof(*peer));
	int rc;

	if (!peer)
		return -ENOMEM;
	peer->over_verbs = !strcmp(options->fabric, "verbs");
	peer->write_flags = FI_COMPLETION | (peer->over_verbs ? 0 : FI_DELIVERY_COMPLETE);
	rc = link_open(&peer->link, &link_options);
	if (rc) {
		free(peer);
		return rc;
	}
	*opened = peer;
	return 0;
}

/* Accepts a client; if that fails the client gets no answer. */
static void serve_client(struct peer *peer, struct fi_info *info)
{
	struct fid_ep *ep;

	if (link_endpoint(&peer->link, info, &ep))
		fi_reject(peer->link.pep, info->handle, NULL, 0);
	else if (fi_accept(ep, &peer->lent, sizeof(peer->lent)))
		fi_close(&ep->fid);
}

static void serve_event(struct peer *peer)
{
	struct fi_eq_cm_entry entry;
	struct fid *failed;
	uint32_t event;
	ssize_t rc;

	rc = link_event(&peer->link, &event, &entry, sizeof(entry), &failed);
	if (failed && failed->fclass == FI_CLASS_EP)
		fi_close(failed);
	if (rc < 0)
		return;
	if (event == FI_CONNREQ) {
		serve_client(peer, entry.info);
		fi_freeinfo(entry.info);
	} else if (event == FI_SHUTDOWN) {
		fi_close(entry.fid);
	}
}

static int serve_open(struct peer *peer, const struct peer_options *options)
{
	uint16_t port;
	int rc;

	if (posix_memalign(&peer->memory, 4096, options->memory_bytes))
		return -ENOMEM;
	/* Touched; otherwise all reads would come from one page of zeros. */
	memset(peer->memory, 1, options->memory_bytes);
	rc = fi_mr_reg(peer->link.domain, peer->memory, options->memory_bytes,
		       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &peer->mr, NULL);
	if (rc)
		return rc;
	peer->lent = (struct lent_memory){
		.key = fi_mr_key(peer->mr),
		.size_bytes = options->memory_bytes,
	};
	if (peer->link.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		peer->lent.address = (uintptr_t)peer->memory;
	rc = link_listen(&peer->link, &port);
	if (!rc)
		peer_print_ready(options->host, port);
	return rc;
}

int peer_serve(const struct peer_options *options)
{
	struct fi_cq_entry unused[1];
	struct peer *peer;
	uint64_t turns;
	int rc;

	rc = peer_open(options, &peer);
	if (rc)
		return rc;
	rc = serve_open(peer, options);
	for (turns = 0; !rc && !peer_stop; turns++) {
		/* The server posts nothing: this only makes progress. */
		if (peer->over_verbs)
			poll(NULL, 0, EVENT_SLEEP_MS);
		else
			fi_cq_read(peer->link.cq, unused, 1);
		if (peer->over_verbs || turns % SERVE_TURNS_PER_EVENT == 0)
			serve_event(peer);
	}
	peer_close(peer);
	return rc;
}

/* Waits for the server's answer, which has the key. */
static int wait_connected(struct peer *peer)
{
	/* The event ends in the private data. */
	union {
		struct fi_eq_cm_entry entry;
		uint8_t bytes[sizeof(struct fi_eq_cm_entry) + sizeof(struct lent_memory)];
	} answer = { 0 };
	uint64_t started_ns = peer_now_ns();
	struct fid *failed;
	uint32_t event;
	ssize_t len;

	do {
		if (peer_now_ns() - started_ns > PEER_STALL_LIMIT_NS)
			return -ETIMEDOUT;
		/* Over tcp the library makes no progress while this sleeps. */
		if (peer->over_verbs)
			poll(NULL, 0, EVENT_SLEEP_MS);
		len = link_event(&peer->link, &event, &answer, sizeof(answer), &failed);
	} while (len == -FI_EAGAIN);
	if (len < 0)
		return len;
	if (event != FI_CONNECTED || (size_t)len < sizeof(answer))
		return -EPROTO;
	memcpy(&peer->lent, answer.entry.data, sizeof(peer->lent));
	return 0;
}

int peer_connect(const struct peer_options *options, struct peer **connected)
{
	struct peer *peer;
	int rc;

	rc = peer_open(options, &peer);
	if (rc)
		return rc;
	peer->block_bytes = options->block_bytes;
	peer->contexts = calloc(options->depth, sizeof(*peer->contexts));
	rc = peer->contexts ? link_endpoint(&peer->link, peer->link.info, &peer->link.ep) : -ENOMEM;
	if (!rc)
		rc = fi_connect(peer->link.ep, peer->link.info->dest_addr, NULL, 0);
	if (!rc)
		rc = wait_connected(peer);
	if (!rc && peer->lent.size_bytes < options->volume_bytes)
		rc = -ENOSPC;
	if (!rc && options->wait_event)
		rc = fi_control(&peer->link.cq->fid, FI_GETWAIT, &peer->event_fd);
	if (rc) {
		peer_close(peer);
		return rc;
	}
	*connected = peer;
	return 0;
}

int peer_register(struct peer *peer, void *memory, size_t size_bytes)
{
	int rc;

	if (!(peer->link.info->domain_attr->mr_mode & FI_MR_LOCAL))
		return 0;
	rc = fi_mr_reg(peer->link.domain, memory, size_bytes, FI_READ | FI_WRITE, 0, 1, 0,
		       &peer->load_mr, NULL);
	if (!rc)
		peer->load_desc = fi_mr_desc(peer->load_mr);
	return rc;
}

int peer_post(struct peer *peer, uint32_t slot, bool write, void *buf, uint64_t offset_bytes)
{
	struct iovec local = { .iov_base = buf, .iov_len = peer->block_bytes };
	struct fi_rma_iov remote = {
		.addr = peer->lent.address + offset_bytes,
		.len = peer->block_bytes,
		.key = peer->lent.key,
	};
	struct fi_msg_rma request = {
		.msg_iov = &local,
		.desc = &peer->load_desc,
		.iov_count = 1,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.context = &peer->contexts[slot],
	};

	if (write)
		return fi_writemsg(peer->link.ep, &request, peer->write_flags);
	return fi_readmsg(peer->link.ep, &request, FI_COMPLETION);
}

/* Each fi_read and fi_write was sent already; these providers do not support FI_MORE. */
int peer_post_end(struct peer *peer)
{
	(void)peer;
	return 0;
}

static uint32_t context_slot(struct peer *peer, void *context)
{
	return (struct fi_context *)context - peer->contexts;
}

int peer_poll(struct peer *peer, struct peer_done done[PEER_DEPTH_MAX])
{
	struct fi_cq_entry entries[PEER_DEPTH_MAX];
	struct fi_cq_err_entry error = { 0 };
	ssize_t count, i;

	count = fi_cq_read(peer->link.cq, entries, PEER_DEPTH_MAX);
	if (count == -FI_EAGAIN)
		return 0;
	if (count == -FI_EAVAIL) {
		if (fi_cq_readerr(peer->link.cq, &error, 0) != 1)
			return -EIO;
		done->slot = context_slot(peer, error.op_context);
		done->status = -error.err;
		return 1;
	}
	for (i = 0; i < count; i++) {
		done[i].slot = context_slot(peer, entries[i].op_context);
		done[i].status = 0;
	}
	return count;
}

/* fi_trywait arms the queue, and tells whether something had completed by then. */
bool peer_wait(struct peer *peer)
{
	struct fid *queue = &peer->link.cq->fid;
	struct pollfd event = { .fd = peer->event_fd, .events = POLLIN };

	if (fi_trywait(peer->link.fabric, &queue, 1))
		return true;
	return poll(&event, 1, PEER_WAIT_LIMIT_MS) > 0;
}

void peer_disconnect(struct peer *peer)
{
	fi_shutdown(peer->link.ep, 0);
	peer_close(peer);
}
