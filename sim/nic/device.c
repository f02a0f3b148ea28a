/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* device.c - the NIC of a node, and which nodes reach each other. See device.h. */
#include "sim/nic/device.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim/nic/connect.h"
#include "sim/nic/cq.h"
#include "sim/nic/qp.h"

static const struct rbx_nic_params *params_;
static const struct rbx_nic_host *host_;
static struct rbx_nic_device *devices; /* of nodes that run */
static struct rbx_nic_device *stopped; /* of nodes that do not */
static bool cut[RBX_NIC_NODES_MAX];

const struct rbx_nic_params *rbx_nic_params(void)
{
	return params_;
}

const struct rbx_nic_host *rbx_nic_host(void)
{
	return host_;
}

static void free_device(struct rbx_nic_device *device)
{
	rbx_nic_cache_destroy(&device->work_cache);
	rbx_nic_cache_destroy(&device->qp_cache);
	rbx_nic_cache_destroy(&device->translation_cache);
	free(device);
}

void rbx_nic_begin(const struct rbx_nic_params *params,
		   const struct rbx_nic_host *host)
{
	RBX_ASSERT(!devices);
	while (stopped) {
		struct rbx_nic_device *device = stopped;

		stopped = device->next;
		free_device(device);
	}
	memset(cut, 0, sizeof(cut));
	rbx_nic_qp_numbers_begin();
	rbx_nic_connect_begin();
	params_ = params;
	host_ = host;
}

void rbx_nic_node_cut(uint32_t node, bool is_cut)
{
	RBX_ASSERT(node < RBX_NIC_NODES_MAX);
	cut[node] = is_cut;
}

bool rbx_nic_reaches(const struct rbx_nic_device *from,
		     const struct rbx_nic_device *to)
{
	return from->node == to->node || (!cut[from->node] && !cut[to->node]);
}

static void describe(struct rbx_nic_device *device)
{
	const struct rbx_nic_params *params = device->params;
	struct rbx_device_caps *caps = &device->base.caps;

	*caps = (struct rbx_device_caps){
		.max_qp = params->qp_max,
		.max_sge = params->sge_max,
		.max_message_bytes = params->message_bytes_max,
		.max_send_wr = params->send_wr_max,
		.max_recv_wr = params->recv_wr_max,
		.max_recv_sge = 1,
		.max_cqe = 1u << 22, /* of ConnectX-4 and later */
		.max_inline_bytes = params->inline_bytes_max,
	};
	snprintf(caps->name, sizeof(caps->name), "n%u", device->node);
	snprintf(caps->description, sizeof(caps->description),
		 "modelled %s of n%u", params->name, device->node);
}

static int init_caches(struct rbx_nic_device *device)
{
	const struct rbx_nic_params *params = device->params;
	int err = rbx_nic_cache_init(&device->work_cache,
				     params->wqe_cache_lines,
				     params->wqe_cache_ways);

	if (!err)
		err = rbx_nic_cache_init(&device->qp_cache,
					 params->qp_cache_entries,
					 params->qp_cache_ways);
	if (!err)
		err = rbx_nic_cache_init(&device->translation_cache,
					 params->translation_cache_lines,
					 params->translation_cache_ways);
	return err;
}

int rbx_nic_open(const struct rbx_device_options *options,
		 struct rbx_device **out, char *error)
{
	struct rbx_nic_device *device = calloc(1, sizeof(*device));

	(void)options;
	if (!device)
		goto out_of_memory;
	device->base.ops = &rbx_fabric_nic;
	device->params = params_;
	device->node = host_->node();
	RBX_ASSERT(device->node < RBX_NIC_NODES_MAX);
	if (init_caches(device)) {
		free_device(device);
		goto out_of_memory;
	}
	rbx_nic_pcie_init(&device->pcie, params_);
	device->link_out.mbps = params_->link_mbps;
	for (uint32_t i = 0; i < params_->units; i++) {
		rbx_nic_server_init(&device->send_units[i]);
		rbx_nic_server_init(&device->receive_units[i]);
	}
	describe(device);
	device->next = devices;
	devices = device;
	*out = &device->base;
	return 0;

out_of_memory:
	if (error)
		snprintf(error, RBX_ERROR_TEXT_MAX,
			 "cannot allocate a model NIC");
	return -ENOMEM;
}

static void unlink_device(struct rbx_nic_device *device)
{
	struct rbx_nic_device **at = &devices;

	while (*at != device)
		at = &(*at)->next;
	*at = device->next;
}

void rbx_nic_close(struct rbx_device *base)
{
	struct rbx_nic_device *device = rbx_nic_device_of(base);

	RBX_ASSERT(!device->qps);
	unlink_device(device);
	free_device(device);
}

int rbx_nic_domain_create(struct rbx_nic_device *device,
			  struct rbx_domain **out)
{
	struct rbx_nic_domain *domain = calloc(1, sizeof(*domain));

	if (!domain)
		return -ENOMEM;
	domain->base.device = &device->base;
	domain->next = device->domains;
	device->domains = domain;
	*out = &domain->base;
	return 0;
}

void rbx_nic_domain_destroy(struct rbx_domain *base)
{
	struct rbx_nic_domain *domain =
		RBX_CONTAINER_OF(base, struct rbx_nic_domain, base);
	struct rbx_nic_domain **at = &rbx_nic_device_of(base->device)->domains;

	while (*at != domain)
		at = &(*at)->next;
	*at = domain->next;
	free(domain);
}

/* Everything that will never be destroyed by its owner. */
static void lose_power(struct rbx_nic_device *device)
{
	while (device->qps)
		rbx_nic_qp_vanish(device->qps);
	rbx_nic_cqs_vanish(device);
	rbx_nic_regions_remove_all(&device->regions);
	while (device->domains)
		rbx_nic_domain_destroy(&device->domains->base);
}

void rbx_nic_node_stop(uint32_t node)
{
	struct rbx_nic_device *device, *next;

	rbx_nic_connect_stop(node);
	for (device = devices; device; device = next) {
		next = device->next;
		if (device->node != node)
			continue;
		lose_power(device);
		unlink_device(device);
		device->next = stopped;
		stopped = device;
	}
}

uint64_t rbx_nic_find_context(struct rbx_nic_device *device, uint64_t at_ps,
			      uint32_t qp_number)
{
	if (rbx_nic_cache_use(&device->qp_cache, qp_number))
		return at_ps;
	return rbx_nic_pcie_fill(&device->pcie, at_ps,
				 device->params->qp_context_bytes);
}

uint64_t rbx_nic_find_translation(struct rbx_nic_device *device, uint64_t at_ps,
				  const struct rbx_nic_region *region,
				  uint64_t addr, uint64_t bytes)
{
	uint64_t line_bytes = (uint64_t)device->params->page_bytes *
			      device->params->translation_line_pages;
	uint64_t offset = addr - (uintptr_t)region->mr.addr;
	uint64_t last = (offset + RBX_MAX(bytes, 1u) - 1) / line_bytes;
	uint64_t found_ps = at_ps;

	for (uint64_t line = offset / line_bytes; line <= last; line++) {
		uint64_t key = (uint64_t)region->mr.rkey << 32 | line;
		uint64_t filled_ps;

		if (rbx_nic_cache_use(&device->translation_cache, key))
			continue;
		filled_ps = rbx_nic_pcie_fill(
			&device->pcie, at_ps,
			device->params->translation_line_pages *
				(uint32_t)sizeof(uint64_t));
		found_ps = RBX_MAX(found_ps, filled_ps);
	}
	return found_ps;
}

static struct rbx_nic_stage units(const char *name,
				  const struct rbx_nic_server *servers,
				  uint32_t count)
{
	struct rbx_nic_stage stage = { .name = name };

	for (uint32_t i = 0; i < count; i++) {
		stage.requests += servers[i].jobs;
		stage.busy_ns += servers[i].busy_ps / RBX_NIC_NS_PS;
	}
	return stage;
}

static struct rbx_nic_stage pipe_stage(const char *name,
				       const struct rbx_nic_pipe *pipe)
{
	return (struct rbx_nic_stage){
		.name = name,
		.requests = pipe->messages,
		.busy_ns = pipe->busy_ps / RBX_NIC_NS_PS,
	};
}

static struct rbx_nic_stage cache_stage(const char *name,
					const struct rbx_nic_cache *cache)
{
	return (struct rbx_nic_stage){
		.name = name,
		.requests = cache->hits + cache->misses,
		.misses = cache->misses,
	};
}

void rbx_nic_stages(const struct rbx_nic_device *device,
		    struct rbx_nic_stage *stages)
{
	uint32_t count = device->params->units;
	const struct rbx_nic_stage all[RBX_NIC_STAGES] = {
		pipe_stage("pcie to NIC", &device->pcie.to_nic),
		pipe_stage("pcie to host", &device->pcie.to_host),
		{ "cache fills", device->pcie.fills, 0, device->pcie.fills },
		cache_stage("work requests", &device->work_cache),
		cache_stage("queue pairs", &device->qp_cache),
		cache_stage("translations", &device->translation_cache),
		units("send units", device->send_units, count),
		units("receive units", device->receive_units, count),
		pipe_stage("link", &device->link_out),
	};

	memcpy(stages, all, sizeof(all));
}
