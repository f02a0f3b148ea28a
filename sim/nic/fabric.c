/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fabric.c - the model NIC behind the interface of all fabrics.
 */
#include "sim/nic/connect.h"
#include "sim/nic/cq.h"
#include "sim/nic/qp.h"

static int probe(char *error)
{
	(void)error;
	return 0;
}

static int create_domain(struct rbx_device *device, struct rbx_domain **domain,
			 char *error)
{
	(void)error;
	return rbx_nic_domain_create(rbx_nic_device_of(device), domain);
}

static uint64_t pages(const struct rbx_nic_params *params, size_t bytes)
{
	return (bytes + params->page_bytes - 1) / params->page_bytes;
}

static int register_memory(struct rbx_device *base,
			   const struct rbx_mr_init *inits, size_t count,
			   struct rbx_mr **mrs, char *error)
{
	struct rbx_nic_device *device = rbx_nic_device_of(base);
	const struct rbx_nic_params *params = device->params;
	uint64_t host_ns = 0;
	int err = rbx_nic_regions_add(&device->regions, base, inits, count, mrs,
				      error);

	if (err)
		return err;
	for (size_t i = 0; i < count; i++)
		host_ns += params->register_ns +
			   pages(params, inits[i].length_bytes) *
				   params->register_page_ns;
	rbx_nic_host()->spend(host_ns);
	return 0;
}

static void deregister_memory(struct rbx_device *base, struct rbx_mr **mrs,
			      size_t count)
{
	struct rbx_nic_device *device = rbx_nic_device_of(base);

	rbx_nic_regions_remove(&device->regions, mrs, count);
	rbx_nic_host()->spend(count * device->params->deregister_ns);
}

static struct rbx_native_device native_device(struct rbx_device *device)
{
	(void)device;
	return (struct rbx_native_device){ 0 };
}

static struct ibv_qp *native_qp(struct rbx_qp *qp)
{
	(void)qp;
	return NULL;
}

const struct rbx_fabric_ops rbx_fabric_nic = {
	.name = "nic",
	.probe = probe,
	.open = rbx_nic_open,
	.close = rbx_nic_close,
	.create_domain = create_domain,
	.destroy_domain = rbx_nic_domain_destroy,
	.register_memory = register_memory,
	.deregister_memory = deregister_memory,
	.create_cq = rbx_nic_cq_create,
	.destroy_cq = rbx_nic_cq_destroy,
	.poll = rbx_nic_cq_poll,
	.arm = rbx_nic_cq_arm,
	.consume_events = rbx_nic_cq_consume,
	.connect = rbx_nic_connect,
	.listen = rbx_nic_listen,
	.close_listener = rbx_nic_close_listener,
	.get_request = rbx_nic_get_request,
	.accept = rbx_nic_accept,
	.reject = rbx_nic_reject,
	.disconnect = rbx_nic_qp_disconnect,
	.destroy_qp = rbx_nic_qp_destroy,
	.post_send = rbx_nic_post_send,
	.post_recv = rbx_nic_post_recv,
	.native_device = native_device,
	.native_qp = native_qp,
};
