/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * on_demand.c - one key for all memory, if the device pages it in on demand.
 *
 * A NIC with on-demand paging handles page faults itself instead of pinning pages. In the
 * implicit form one registration covers the whole address space. During a fault packets are
 * dropped and repeated, so it is used only if the program asks for it. All of reads, writes,
 * sends and receives of a reliable connection must support it: a device with a part of it (as
 * Soft-RoCE of some kernels) would fail on the rest. The key grants nothing to peers.
 */
#include <errno.h>
#include <string.h>

#include "fabric/verbs/explain.h"
#include "fabric/verbs/verbs.h"

static bool on_demand_is_complete(struct ibv_context *verbs)
{
	const uint32_t needed = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
				IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
	struct ibv_device_attr_ex attr = { .comp_mask = 0 };

	if (ibv_query_device_ex(verbs, NULL, &attr))
		return false;
	if (!(attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT))
		return false;
	return (attr.odp_caps.per_transport_caps.rc_odp_caps & needed) ==
	       needed;
}

int rbx_verbs_on_demand_enable(struct rbx_verbs_device *device, char *error)
{
	if (!on_demand_is_complete(device->verbs))
		return rbx_verbs_explain(error, -ENOTSUP,
			"%s has no implicit on-demand paging for all that we do; leave on_demand_paging out",
			device->verbs->device->name);
	device->any_mr = ibv_reg_mr(device->pd, NULL, SIZE_MAX,
				    IBV_ACCESS_LOCAL_WRITE |
					    IBV_ACCESS_ON_DEMAND);
	if (!device->any_mr)
		return rbx_verbs_explain(error, -errno,
			"%s refuses a key for all memory: %s; leave on_demand_paging out",
			device->verbs->device->name, strerror(errno));
	device->device.caps.has_any_lkey = true;
	device->device.caps.any_lkey = device->any_mr->lkey;
	return 0;
}
