/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs over libfabric share: a provider, its objects, and a connected endpoint
 * (FI_EP_MSG), or one that listens.
 *
 * In libfabric's favour: no locks (FI_THREAD_DOMAIN), and no progress that needs another
 * thread. Functions return 0 or -errno, as libfabric does.
 */
#ifndef LIBFABRIC_LINK_H
#define LIBFABRIC_LINK_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct link_options {
	const char *fabric;	/* "tcp" or "verbs" */
	const char *host;
	const char *port;
	bool serve;
	uint64_t caps;
	size_t depth;		/* of the send queue; 0: the provider's own */
	enum fi_wait_obj wait;	/* of the completion queue */
};

struct link {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_ep *ep;	/* closed with the link; may be NULL */
	struct fid_pep *pep;	/* the same, for listening */
};

/* After a failure there is nothing to close. */
int link_open(struct link *link, const struct link_options *options);
void link_close(struct link *link);
void link_close_object(struct fid *fid);	/* NULL: nothing */

/* An endpoint that is not connected. Each receive completes, and so do sends that ask for it. */
int link_endpoint(struct link *link, struct fi_info *info, struct fid_ep **ep);

/* Listens, and returns the port. */
int link_listen(struct link *link, uint16_t *port);

/*
 * Reads one event. Returns its length, -FI_EAGAIN if there is none, or -errno if a connection
 * failed while it was made; *failed is its endpoint.
 */
ssize_t link_event(struct link *link, uint32_t *event, void *entry, size_t len,
		   struct fid **failed);

#endif
