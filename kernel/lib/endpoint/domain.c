/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * domain.c - protection domains: a module's use of an RDMA device.
 *
 * A domain is a client of the device's context, as a volume is, and holds the context. So
 * the pollers stay bound, and the removal of the device waits until the domain is
 * destroyed. It has its own ib_pd, so the keys of a module do not work over the queue
 * pairs of volumes and of other modules.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "core/limits.h"
#include "kernel/lib/address.h"
#include "kernel/lib/endpoint/endpoint.h"

/* Used by paced endpoints. */
static const struct rbx_client_options client_options = {
	.queue_pairs = 1,
	.merge = true,
	.chain = true,
};

/* ---- Limits ---------------------------------------------------------------------*/

static uint32_t message_bytes_max(struct ib_device *device)
{
	uint32_t port, bytes_max = U32_MAX;
	struct ib_port_attr attr;

	rdma_for_each_port(device, port)
		if (!ib_query_port(device, port, &attr))
			bytes_max = min(bytes_max, attr.max_msg_sz);
	return bytes_max;
}

static void limits_set(struct rbx_protection_domain *domain)
{
	struct ib_device *device = domain->device;
	const struct ib_device_attr *attrs = &device->attrs;
	bool has_extensions = attrs->device_cap_flags &
			      IB_DEVICE_MEM_MGT_EXTENSIONS;
	uint32_t segments_max = min_t(uint32_t, attrs->max_send_sge,
				      RBX_SGE_MAX);
	/* One work request is kept for the drain. The completions of both directions
	 * share the room of one poller. */
	uint32_t depth_max = min_t(uint32_t, attrs->max_qp_wr - 1,
				   rbx_context_room_max(domain->client.ctx) / 2 - 1);

	if (attrs->max_sge_rd > 0)
		segments_max = min_t(uint32_t, segments_max, attrs->max_sge_rd);
	domain->limits = (struct rbx_endpoint_limits){
		.send_depth_max = depth_max,
		.receive_depth_max = depth_max,
		.segments_max = segments_max,
		.receive_segments_max = min_t(uint32_t, attrs->max_recv_sge,
					      RBX_SGE_MAX),
		.message_bytes_max = message_bytes_max(device),
		.region_pages_max =
			has_extensions ? attrs->max_fast_reg_page_list_len : 0,
		.connect_data_max = RBX_IB_CONNECT_DATA_MAX,
		.accept_data_max = RBX_IB_ACCEPT_DATA_MAX,
		.reject_data_max = RBX_IB_REJECT_DATA_MAX,
		.has_invalidate = has_extensions,
		.has_atomics = attrs->atomic_cap != IB_ATOMIC_NONE,
	};
}

void rbx_endpoint_limits(const struct rbx_protection_domain *domain,
			 struct rbx_endpoint_limits *limits)
{
	*limits = domain->limits;
}
EXPORT_SYMBOL_GPL(rbx_endpoint_limits);

struct ib_device *
rbx_protection_domain_device(const struct rbx_protection_domain *domain)
{
	return domain->device;
}
EXPORT_SYMBOL_GPL(rbx_protection_domain_device);

/* ---- Users ---------------------------------------------------------------------*/

int rbx_domain_enter(struct rbx_protection_domain *domain)
{
	int err = 0;

	mutex_lock(&domain->lock);
	if (domain->is_gone)
		err = -ENODEV;
	else
		domain->users_count++;
	mutex_unlock(&domain->lock);
	return err;
}

void rbx_domain_leave(struct rbx_protection_domain *domain)
{
	mutex_lock(&domain->lock);
	domain->users_count--;
	mutex_unlock(&domain->lock);
}

/* The device is being removed. A thread that is just making something in the domain is
 * waited for too. */
static void device_goes(struct rbx_device_watch *watch)
{
	struct rbx_protection_domain *domain =
		container_of(watch, struct rbx_protection_domain, watch);
	struct rbx_endpoint *endpoint;

	mutex_lock(&domain->lock);
	domain->is_gone = true;
	list_for_each_entry(endpoint, &domain->endpoints, link)
		rbx_endpoint_disconnect(endpoint);
	rbx_endpoint_listeners_wake_locked(domain);
	mutex_unlock(&domain->lock);
	if (domain->gone)
		domain->gone(domain, domain->user);
}

/* ---- Making and freeing --------------------------------------------------------*/

static int domain_fill(struct rbx_protection_domain *domain)
{
	struct rbx_context *ctx = domain->client.ctx;
	int err;

	domain->device = ctx->device;
	limits_set(domain);
	domain->pd = ib_alloc_pd(domain->device, 0);
	if (IS_ERR(domain->pd))
		return PTR_ERR(domain->pd);
	domain->watch.gone = device_goes;
	err = rbx_context_watch(ctx, &domain->watch);
	if (err)
		ib_dealloc_pd(domain->pd);
	return err;
}

static int client_open(struct rbx_protection_domain *domain, const char *address,
		       const char *name)
{
	struct sockaddr_storage at = { 0 };
	struct ib_device *device;
	int err;

	if (name) {
		device = ib_device_get_by_name(name, RDMA_DRIVER_UNKNOWN);
		return device ? rbx_client_open_on(&domain->client,
						   &client_options, device) :
				-ENODEV;
	}
	err = address ? rbx_address_parse(address, &at) : -EINVAL;
	return err ? err :
		     rbx_client_open(&domain->client, &client_options, &at);
}

int rbx_protection_domain_create(
	const char *address, const struct rbx_protection_domain_options *options,
	struct rbx_protection_domain **out)
{
	struct rbx_protection_domain *domain =
		kzalloc(sizeof(*domain), GFP_KERNEL);
	int err;

	if (!domain)
		return -ENOMEM;
	mutex_init(&domain->lock);
	INIT_LIST_HEAD(&domain->endpoints);
	INIT_LIST_HEAD(&domain->listeners);
	if (options) {
		domain->gone = options->gone;
		domain->user = options->user;
	}
	err = client_open(domain, address, options ? options->device : NULL);
	if (err)
		goto out_free;
	err = rbx_context_hold(domain->client.ctx, NULL);
	if (err)
		goto out_close;
	err = domain_fill(domain);
	if (err)
		goto out_release;
	*out = domain;
	return 0;

out_release:
	rbx_context_release(domain->client.ctx);
out_close:
	rbx_client_close(&domain->client);
out_free:
	kfree(domain);
	return err;
}
EXPORT_SYMBOL_GPL(rbx_protection_domain_create);

int rbx_protection_domain_destroy(struct rbx_protection_domain *domain)
{
	uint32_t users_count;

	if (!domain)
		return 0;
	mutex_lock(&domain->lock);
	users_count = domain->users_count;
	mutex_unlock(&domain->lock);
	if (users_count)
		return -EBUSY;
	rbx_context_unwatch(domain->client.ctx, &domain->watch);
	ib_dealloc_pd(domain->pd);
	rbx_context_release(domain->client.ctx);
	rbx_client_close(&domain->client);
	kfree(domain);
	return 0;
}
EXPORT_SYMBOL_GPL(rbx_protection_domain_destroy);
