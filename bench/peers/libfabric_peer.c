/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The libfabric peer: one-sided reads and writes over the tcp or the verbs
 * provider, connected endpoints (FI_EP_MSG).
 *
 * A request is one fi_readmsg or fi_writemsg. Over tcp writes carry
 * FI_DELIVERY_COMPLETE, so that a completion means "placed at the target", as
 * it does for RDMAbox; by default it means "handed to the socket". The flag
 * goes with each call: among the operation flags of the endpoint the provider
 * accepts it and ignores it, and fi_write completes in half a round trip. Over
 * verbs a completion is that of a reliable connection, which means it anyway.
 *
 * What a provider asks for, the program does: the verbs provider wants the
 * load's buffers registered and remote memory named by its address there, the
 * tcp provider neither. The key, the address and the size travel in the private
 * data of the connection's acceptance.
 *
 * The tcp provider has no thread of its own: a target that does not call the
 * library stands still. The server therefore reads its completion queue
 * without pause, and looks at the event queue (connections that come and go)
 * once in many turns. Over verbs the device does the work, and the server
 * sleeps between two looks: fi_eq_sread of that provider was seen to take all
 * of a CPU. Each client has an endpoint of its own, which ends with the event
 * that the client has left.
 *
 * A broken connection or a refused key completes requests with an error.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

/* An event queue read costs system calls; connections can wait this many turns. */
#define SERVE_TURNS_PER_EVENT 1024
/* Sleep between two looks at an event queue, where nothing else is to be done. */
#define EVENT_SLEEP_MS 10

const struct peer_traits peer_traits = {
	.fabrics = { "tcp", "verbs" },
	.chain_max = 1,	/* both providers post each call by itself */
};

/* Private data of an accepted connection. Both ends are the same program. */
struct lent_memory {
	uint64_t address;	/* 0 where remote memory is named by its offset */
	uint64_t key;
	uint64_t size_bytes;
};

struct peer {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_ep *ep;		/* client */
	struct fid_pep *pep;		/* server, as all that follows */
	struct fid_mr *mr;
	void *memory;
	struct lent_memory lent;
	bool over_verbs;
	struct fid_mr *load_mr;		/* client: of the load's buffers, where that is wanted */
	void *load_desc;
	uint64_t write_flags;
	int event_fd;			/* client: of the completion queue, to sleep on */
	uint32_t block_bytes;
	struct fi_context *contexts;	/* one for each slot; a completion names its slot by it */
};

void peer_fabric_name(const struct peer_options *options, char *name, size_t len)
{
	snprintf(name, len, "libfabric-%s %u.%u", options->fabric, FI_MAJOR(fi_version()),
		 FI_MINOR(fi_version()));
}

static void close_object(struct fid *fid)
{
	if (fid)
		fi_close(fid);
}

static void peer_close(struct peer *peer)
{
	close_object(peer->ep ? &peer->ep->fid : NULL);
	close_object(peer->pep ? &peer->pep->fid : NULL);
	close_object(peer->mr ? &peer->mr->fid : NULL);
	close_object(peer->load_mr ? &peer->load_mr->fid : NULL);
	close_object(peer->cq ? &peer->cq->fid : NULL);
	close_object(peer->eq ? &peer->eq->fid : NULL);
	close_object(peer->domain ? &peer->domain->fid : NULL);
	close_object(peer->fabric ? &peer->fabric->fid : NULL);
	fi_freeinfo(peer->info);
	free(peer->memory);
	free(peer->contexts);
	free(peer);
}

static int find_provider(struct peer *peer, const struct peer_options *options)
{
	struct fi_info *hints = fi_allocinfo();
	int rc;

	if (!hints)
		return -ENOMEM;
	hints->ep_attr->type = FI_EP_MSG;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->caps = FI_MSG | FI_RMA;
	/* In the peer's favour: no locks, and no progress that anybody else would have to make. */
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	if (!options->serve)
		hints->tx_attr->size = options->depth;
	hints->fabric_attr->prov_name = strdup(options->fabric);
	rc = fi_getinfo(FI_VERSION(1, 17), options->host, options->port,
			options->serve ? FI_SOURCE : 0, hints, &peer->info);
	fi_freeinfo(hints);
	return rc;
}

/* Opens what both sides have. */
static int peer_open(const struct peer_options *options, struct peer **opened)
{
	struct fi_cq_attr cq_attr = {
		.format = FI_CQ_FORMAT_CONTEXT,
		.wait_obj = options->wait_event ? FI_WAIT_FD : FI_WAIT_NONE,
	};
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_NONE };
	struct peer *peer = calloc(1, sizeof(*peer));
	int rc;

	if (!peer)
		return -ENOMEM;
	peer->over_verbs = !strcmp(options->fabric, "verbs");
	peer->write_flags = FI_COMPLETION | (peer->over_verbs ? 0 : FI_DELIVERY_COMPLETE);
	rc = find_provider(peer, options);
	if (!rc)
		rc = fi_fabric(peer->info->fabric_attr, &peer->fabric, NULL);
	if (!rc)
		rc = fi_eq_open(peer->fabric, &eq_attr, &peer->eq, NULL);
	if (!rc)
		rc = fi_domain(peer->fabric, peer->info, &peer->domain, NULL);
	if (!rc)
		rc = fi_cq_open(peer->domain, &cq_attr, &peer->cq, NULL);
	if (rc) {
		peer_close(peer);
		return rc;
	}
	*opened = peer;
	return 0;
}

static int endpoint_open(struct peer *peer, struct fi_info *info, struct fid_ep **ep)
{
	int rc;

	rc = fi_endpoint(peer->domain, info, ep, NULL);
	if (rc)
		return rc;
	rc = fi_ep_bind(*ep, &peer->eq->fid, 0);
	if (!rc)
		rc = fi_ep_bind(*ep, &peer->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!rc)
		rc = fi_enable(*ep);
	if (rc)
		fi_close(&(*ep)->fid);
	return rc;
}

/* Accepts a client, or leaves it to find that nobody answers. */
static void serve_client(struct peer *peer, struct fi_info *info)
{
	struct fid_ep *ep;

	if (endpoint_open(peer, info, &ep))
		fi_reject(peer->pep, info->handle, NULL, 0);
	else if (fi_accept(ep, &peer->lent, sizeof(peer->lent)))
		fi_close(&ep->fid);
}

static void serve_event(struct peer *peer)
{
	struct fi_eq_err_entry error = { 0 };
	struct fi_eq_cm_entry entry;
	uint32_t event;
	ssize_t rc;

	rc = fi_eq_read(peer->eq, &event, &entry, sizeof(entry), 0);
	if (rc == -FI_EAVAIL) {
		/* A connection that failed while it was being made. */
		if (fi_eq_readerr(peer->eq, &error, 0) > 0 && error.fid->fclass == FI_CLASS_EP)
			fi_close(error.fid);
		return;
	}
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
	struct sockaddr_in address;
	size_t address_len = sizeof(address);
	int rc;

	if (posix_memalign(&peer->memory, 4096, options->memory_bytes))
		return -ENOMEM;
	/* Touched, or reads would all come from one page of zeros. */
	memset(peer->memory, 1, options->memory_bytes);
	rc = fi_mr_reg(peer->domain, peer->memory, options->memory_bytes,
		       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &peer->mr, NULL);
	if (rc)
		return rc;
	peer->lent = (struct lent_memory){
		.key = fi_mr_key(peer->mr),
		.size_bytes = options->memory_bytes,
	};
	if (peer->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		peer->lent.address = (uintptr_t)peer->memory;
	rc = fi_passive_ep(peer->fabric, peer->info, &peer->pep, NULL);
	if (!rc)
		rc = fi_pep_bind(peer->pep, &peer->eq->fid, 0);
	if (!rc)
		rc = fi_listen(peer->pep);
	if (!rc)
		rc = fi_getname(&peer->pep->fid, &address, &address_len);
	if (!rc)
		peer_print_ready(options->host, ntohs(address.sin_port));
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
			fi_cq_read(peer->cq, unused, 1);
		if (peer->over_verbs || turns % SERVE_TURNS_PER_EVENT == 0)
			serve_event(peer);
	}
	peer_close(peer);
	return rc;
}

/* Waits for the server's answer, which brings the key. */
static int wait_connected(struct peer *peer)
{
	/* The event ends in the private data. */
	union {
		struct fi_eq_cm_entry entry;
		uint8_t bytes[sizeof(struct fi_eq_cm_entry) + sizeof(struct lent_memory)];
	} answer = { 0 };
	uint64_t started_ns = peer_now_ns();
	struct fi_eq_err_entry error = { 0 };
	uint32_t event;
	ssize_t len;

	do {
		if (peer_now_ns() - started_ns > PEER_STALL_LIMIT_NS)
			return -ETIMEDOUT;
		/* Over tcp the library makes no progress while this sleeps. */
		if (peer->over_verbs)
			poll(NULL, 0, EVENT_SLEEP_MS);
		len = fi_eq_read(peer->eq, &event, &answer, sizeof(answer), 0);
	} while (len == -FI_EAGAIN);
	if (len == -FI_EAVAIL)
		return fi_eq_readerr(peer->eq, &error, 0) > 0 ? -error.err : -EIO;
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
	rc = peer->contexts ? endpoint_open(peer, peer->info, &peer->ep) : -ENOMEM;
	if (!rc)
		rc = fi_connect(peer->ep, peer->info->dest_addr, NULL, 0);
	if (!rc)
		rc = wait_connected(peer);
	if (!rc && peer->lent.size_bytes < options->volume_bytes)
		rc = -ENOSPC;
	if (!rc && options->wait_event)
		rc = fi_control(&peer->cq->fid, FI_GETWAIT, &peer->event_fd);
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

	if (!(peer->info->domain_attr->mr_mode & FI_MR_LOCAL))
		return 0;
	rc = fi_mr_reg(peer->domain, memory, size_bytes, FI_READ | FI_WRITE, 0, 1, 0,
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
		return fi_writemsg(peer->ep, &request, peer->write_flags);
	return fi_readmsg(peer->ep, &request, FI_COMPLETION);
}

/* Each fi_read and fi_write has gone out already; these providers do not know FI_MORE. */
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

	count = fi_cq_read(peer->cq, entries, PEER_DEPTH_MAX);
	if (count == -FI_EAGAIN)
		return 0;
	if (count == -FI_EAVAIL) {
		if (fi_cq_readerr(peer->cq, &error, 0) != 1)
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

/* fi_trywait arms the queue, and tells if something had completed by then. */
bool peer_wait(struct peer *peer)
{
	struct fid *queue = &peer->cq->fid;
	struct pollfd event = { .fd = peer->event_fd, .events = POLLIN };

	if (fi_trywait(peer->fabric, &queue, 1))
		return true;
	return poll(&event, 1, PEER_WAIT_LIMIT_MS) > 0;
}

void peer_disconnect(struct peer *peer)
{
	fi_shutdown(peer->ep, 0);
	peer_close(peer);
}
