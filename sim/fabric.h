/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fabric.h - a simulated fabric, and what the world does to its devices.
 *
 * It is a fabric like the others (fabric/fabric.h), on top of the queue of events. open()
 * makes a device for the node whose fiber calls it (rbx_sim_node()), connect() may wait, and
 * later effects come by events. Its event descriptors are those of descriptors.h. Addresses
 * are texts "nN:P", node N and port P.
 *
 * plain/ is as fast and as hostile as a reliable connection may be, for checks. nic/ models
 * what a NIC costs, for measurements.
 */
#ifndef RBX_SIM_FABRIC_H
#define RBX_SIM_FABRIC_H

#include "fabric/fabric.h"

struct rbx_sim_fabric {
	const struct rbx_fabric_ops *ops;
	/* Before a run, after rbx_sim_sites_draw(). */
	void (*begin)(uint64_t seed);
	/* The node has lost its power: its connections are silent, its devices are gone.
	 * close() is not called for them. */
	void (*node_stop)(uint32_t node);
	/* Nothing passes between a node and all others while it is cut. */
	void (*node_cut)(uint32_t node, bool is_cut);
	/* The same between two of them only. NULL: the device cannot. */
	void (*pair_cut)(uint32_t node, uint32_t other, bool is_cut);
	/* From now on this node has no right to the memory of others, and never uses it. NULL: the
	 * device does not look. */
	void (*node_fence)(uint32_t node, bool is_fenced);
	/* What a node has posted to read and write and what has not completed. NULL: the
	 * device does not tell. */
	void (*in_flight)(uint32_t node, uint64_t *bytes,
			  uint32_t *work_requests);
};

extern const struct rbx_sim_fabric rbx_sim_fabric_plain;
extern const struct rbx_sim_fabric rbx_sim_fabric_nic;

/* Before a run on plain devices: half of the round trip. */
void rbx_sim_plain_way(uint64_t ns);
/* Messages that plain devices have delivered, of all nodes. */
uint64_t rbx_sim_plain_messages(void);

#endif
