/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wires.c - see wires.h.
 *
 * Memory has the same addresses in every run (host/memory.c): work requests are sorted by
 * remote address, so addresses influence decisions.
 */
#include "sim/scenarios/wires.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "sim/fail.h"
#include "sim/nic/cq.h"
#include "sim/nic/qp.h"
#include "sim/sites.h"

#define BLOCKS_MAX 4096u

static struct block {
	void *addr;
	size_t bytes;
} blocks[BLOCKS_MAX];
static uint32_t block_count, device_count;
static struct rbx_device *devices[RBX_NIC_NODES_MAX];
static struct rbx_sim_wires_totals totals;

void *rbx_sim_take(size_t count, size_t bytes)
{
	void *memory = calloc(count, bytes);

	if (!memory)
		rbx_sim_fail("memory", "there are no %zu times %zu bytes",
			     count, bytes);
	return memory;
}

void rbx_sim_wires_begin(const struct rbx_nic_params *params)
{
	rbx_sim_events_reset();
	rbx_sim_sites_reset(0);
	rbx_sim_cores_begin(params);
	rbx_nic_begin(params, &rbx_sim_cores_host);
}

struct rbx_device *rbx_sim_wires_device(uint32_t node)
{
	struct rbx_device **device = &devices[device_count];

	RBX_ASSERT(device_count++ < RBX_NIC_NODES_MAX);
	rbx_sim_on_node(node);
	if (rbx_nic_open(NULL, device, NULL))
		rbx_sim_fail("memory", "there is none for a model NIC");
	return *device;
}

static void *take_block(size_t bytes)
{
	void *addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (addr == MAP_FAILED || block_count == BLOCKS_MAX)
		rbx_sim_fail("memory", "there are no %zu bytes", bytes);
	blocks[block_count++] = (struct block){ addr, bytes };
	return addr;
}

struct rbx_mr *rbx_sim_wires_memory(struct rbx_device *device, size_t bytes)
{
	struct rbx_mr_init init = {
		.addr = take_block(bytes),
		.length_bytes = bytes,
		.rights = RBX_LOCAL_WRITE | RBX_REMOTE_READ | RBX_REMOTE_WRITE,
		.memory_fd = -1,
	};
	struct rbx_mr *mr;
	int err = device->ops->register_memory(device, &init, 1, &mr, NULL);

	RBX_ASSERT(!err);
	return mr;
}

struct rbx_cq *rbx_sim_wires_cq(struct rbx_device *device, uint32_t depth_count)
{
	struct rbx_cq *cq;
	int err = device->ops->create_cq(device, depth_count, &cq, NULL);

	RBX_ASSERT(!err);
	return cq;
}

void rbx_sim_wires_connect(struct rbx_device *one,
			   const struct rbx_qp_init *one_init,
			   struct rbx_qp **one_qp, struct rbx_device *other,
			   const struct rbx_qp_init *other_init,
			   struct rbx_qp **other_qp)
{
	struct rbx_nic_qp *ends[2];
	int err = rbx_nic_qp_create(rbx_nic_device_of(one), one_init, &ends[0],
				    NULL);

	if (!err)
		err = rbx_nic_qp_create(rbx_nic_device_of(other), other_init,
					&ends[1], NULL);
	if (err)
		rbx_sim_fail("device",
			     "the NIC has no such queue pairs, or too few "
			     "(qp_max, send_wr_max, recv_wr_max)");
	rbx_nic_qp_join(ends[0], ends[1]);
	*one_qp = &ends[0]->base;
	*other_qp = &ends[1]->base;
}

void rbx_sim_wires_end(void)
{
	totals.events += rbx_sim_events_run();
	totals.virtual_ns += rbx_sim_now();
	for (uint32_t i = 0; i < device_count; i++) {
		struct rbx_nic_device *device = rbx_nic_device_of(devices[i]);

		totals.work_requests += device->work_requests;
		rbx_nic_node_stop(device->node);
	}
	/* While the objects of the queued events still exist. */
	rbx_sim_events_reset();
	while (block_count != 0) {
		const struct block *block = &blocks[--block_count];

		munmap(block->addr, block->bytes);
	}
	device_count = 0;
}

const struct rbx_sim_wires_totals *rbx_sim_wires_totals(void)
{
	return &totals;
}
