/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * device.h - the model NIC, and the path of a work request through it.
 *
 *	requester                           responder
 *	  post      post.c     the host writes it, rings the doorbell
 *	  fetch     fetch.c    it came with the doorbell, or is read by DMA
 *	  send      send.c     contexts and translations are looked up, missed
 *	                       ones filled over PCIe; a processing unit
 *	  gather    send.c     the payload is read by DMA, now and not before
 *	            ---- link ---->
 *	                          receive   respond.c  a processing unit;
 *	                                    key, bounds and rights are checked
 *	                          place     respond.c  bytes written, or read
 *	            <--- link -----
 *	  ack       complete.c a processing unit; read data is scattered
 *	  complete  complete.c in the order of posting; a CQE by DMA
 *	  event     cq.c       an interrupt, if one was asked for
 *
 * A work request (struct rbx_nic_op) is in the ring of its queue pair and in one stage at a
 * time: it has one event and one job, and each stage passes it to the next. The responder
 * works on the requester's structure: the simulation is one process. It finds the other end
 * through qp->peer, which is NULL once that end is gone.
 *
 * Time is virtual, from sim/events.h. Randomness comes from the named sites of sim/sites.h.
 * Keys of caches are numbers of ours. So a run can be repeated.
 *
 * Not modelled: path errors, atomics, shared receive queues, several ports, and that packets
 * of different messages share a wire packet by packet.
 */
#ifndef RBX_SIM_NIC_DEVICE_H
#define RBX_SIM_NIC_DEVICE_H

#include "sim/nic/cache.h"
#include "sim/nic/host.h"
#include "sim/nic/memory.h"
#include "sim/nic/params.h"
#include "sim/nic/pcie.h"
#include "sim/nic/server.h"

#define RBX_NIC_NODES_MAX 256u

struct rbx_nic_qp;
struct rbx_nic_cq;

struct rbx_nic_device {
	struct rbx_device base;
	const struct rbx_nic_params *params;
	uint32_t node;
	struct rbx_nic_device *next; /* all of the simulation */

	struct rbx_nic_pcie pcie;
	struct rbx_nic_pipe link_out;
	struct rbx_nic_cache work_cache; /* lines of work requests */
	struct rbx_nic_cache qp_cache; /* contexts of queue pairs */
	struct rbx_nic_cache translation_cache;
	struct rbx_nic_server send_units[RBX_NIC_UNITS_MAX];
	struct rbx_nic_server receive_units[RBX_NIC_UNITS_MAX];

	struct rbx_nic_regions regions;
	struct rbx_nic_qp *qps; /* in the order of creation, latest first */
	uint32_t qp_count;
	uint32_t next_unit; /* for the next queue pair */
	struct rbx_nic_cq *cqs;
	struct rbx_nic_domain *domains;
	uint64_t interrupts; /* counters */
	uint64_t doorbells;
	uint64_t work_requests;
	uint64_t bytes; /* of payload, as requester */
	uint64_t resent;
};

/* The work of a stage, for statistics. */
struct rbx_nic_stage {
	const char *name;
	uint64_t requests;
	uint64_t busy_ns; /* of all its servers together */
	uint64_t misses;
};

#define RBX_NIC_STAGES 9u

/* Fills in RBX_NIC_STAGES of them. */
void rbx_nic_stages(const struct rbx_nic_device *device,
		    struct rbx_nic_stage *stages);

/* The parameters given to rbx_nic_begin(), and the state of the network. */
const struct rbx_nic_params *rbx_nic_params(void);
const struct rbx_nic_host *rbx_nic_host(void);

/* Nothing passes between a node and all others while it is cut. */
void rbx_nic_node_cut(uint32_t node, bool is_cut);
/* Its devices are gone, its connections silent; close() is not called for them. */
void rbx_nic_node_stop(uint32_t node);
/* Whether a packet passes from one to the other just now. */
bool rbx_nic_reaches(const struct rbx_nic_device *from,
		     const struct rbx_nic_device *to);

static inline struct rbx_nic_device *rbx_nic_device_of(struct rbx_device *base)
{
	return RBX_CONTAINER_OF(base, struct rbx_nic_device, base);
}

/* When the contexts and translations that a message needs are in the cache; missing ones are
 * filled. bytes at offset of a region. */
uint64_t rbx_nic_find_context(struct rbx_nic_device *device, uint64_t at_ps,
			      uint32_t qp_number);
uint64_t rbx_nic_find_translation(struct rbx_nic_device *device, uint64_t at_ps,
				  const struct rbx_nic_region *region,
				  uint64_t addr, uint64_t bytes);

int rbx_nic_domain_create(struct rbx_nic_device *device,
			  struct rbx_domain **domain);
void rbx_nic_domain_destroy(struct rbx_domain *domain);

/* The device as a fabric; its functions are in fabric.c. */
extern const struct rbx_fabric_ops rbx_fabric_nic;
int rbx_nic_open(const struct rbx_device_options *options,
		 struct rbx_device **device, char *error);
void rbx_nic_close(struct rbx_device *device);

#endif
