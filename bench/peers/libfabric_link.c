/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See libfabric_link.h. */
#include "libfabric_link.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

void link_close_object(struct fid *fid)
{
	if (fid)
		fi_close(fid);
}

void link_close(struct link *link)
{
	link_close_object(link->ep ? &link->ep->fid : NULL);
	link_close_object(link->pep ? &link->pep->fid : NULL);
	link_close_object(link->cq ? &link->cq->fid : NULL);
	link_close_object(link->eq ? &link->eq->fid : NULL);
	link_close_object(link->domain ? &link->domain->fid : NULL);
	link_close_object(link->fabric ? &link->fabric->fid : NULL);
	if (link->info)
		fi_freeinfo(link->info);
}

static int find_provider(struct link *link, const struct link_options *options)
{
	struct fi_info *hints = fi_allocinfo();
	int rc;

	if (!hints)
		return -ENOMEM;
	hints->ep_attr->type = FI_EP_MSG;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->caps = options->caps;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	hints->tx_attr->size = options->depth;
	hints->fabric_attr->prov_name = strdup(options->fabric);
	rc = fi_getinfo(FI_VERSION(1, 17), options->host, options->port,
			options->serve ? FI_SOURCE : 0, hints, &link->info);
	fi_freeinfo(hints);
	return rc;
}

int link_open(struct link *link, const struct link_options *options)
{
	struct fi_cq_attr cq_attr = {
		.format = FI_CQ_FORMAT_CONTEXT,
		.wait_obj = options->wait,
	};
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_NONE };
	int rc;

	memset(link, 0, sizeof(*link));
	rc = find_provider(link, options);
	if (!rc)
		rc = fi_fabric(link->info->fabric_attr, &link->fabric, NULL);
	if (!rc)
		rc = fi_eq_open(link->fabric, &eq_attr, &link->eq, NULL);
	if (!rc)
		rc = fi_domain(link->fabric, link->info, &link->domain, NULL);
	if (!rc)
		rc = fi_cq_open(link->domain, &cq_attr, &link->cq, NULL);
	if (rc)
		link_close(link);
	return rc;
}

int link_endpoint(struct link *link, struct fi_info *info, struct fid_ep **ep)
{
	int rc;

	rc = fi_endpoint(link->domain, info, ep, NULL);
	if (rc)
		return rc;
	rc = fi_ep_bind(*ep, &link->eq->fid, 0);
	if (!rc)
		rc = fi_ep_bind(*ep, &link->cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
	if (!rc)
		rc = fi_ep_bind(*ep, &link->cq->fid, FI_RECV);
	if (!rc)
		rc = fi_enable(*ep);
	if (rc)
		fi_close(&(*ep)->fid);
	return rc;
}

int link_listen(struct link *link, uint16_t *port)
{
	struct sockaddr_in address;
	size_t address_len = sizeof(address);
	int rc;

	rc = fi_passive_ep(link->fabric, link->info, &link->pep, NULL);
	if (!rc)
		rc = fi_pep_bind(link->pep, &link->eq->fid, 0);
	if (!rc)
		rc = fi_listen(link->pep);
	if (!rc)
		rc = fi_getname(&link->pep->fid, &address, &address_len);
	if (!rc)
		*port = ntohs(address.sin_port);
	return rc;
}

ssize_t link_event(struct link *link, uint32_t *event, void *entry, size_t len,
		   struct fid **failed)
{
	struct fi_eq_err_entry error = { 0 };
	ssize_t rc = fi_eq_read(link->eq, event, entry, len, 0);

	*failed = NULL;
	if (rc != -FI_EAVAIL)
		return rc;
	if (fi_eq_readerr(link->eq, &error, 0) <= 0)
		return -EIO;
	*failed = error.fid;
	return -error.err;
}
