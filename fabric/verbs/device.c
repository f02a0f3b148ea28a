/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * device.c - opens an RDMA device and reports what it can do.
 *
 * An open device is a protection domain on one port of an RDMA device, and the thread that
 * takes its connection events. The device is asked for all its properties except the inline
 * size, for which there is no call: that is found by trying.
 *
 * Two devices of one process on the same NIC share only the context of librdmacm.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/verbs/choose.h"
#include "fabric/verbs/explain.h"
#include "fabric/verbs/gid.h"
#include "fabric/verbs/verbs.h"

int rbx_verbs_probe(char *error)
{
	struct rbx_verbs_choice choice;
	int err = rbx_verbs_choose(NULL, &choice, error);

	if (err)
		return err;
	rbx_verbs_choose_release(&choice);
	return 0;
}

static void caps_describe(struct rbx_device_caps *caps,
			  const struct rbx_verbs_choice *choice)
{
	char gid[RBX_NAME_MAX];

	rbx_verbs_gid_format(&choice->gid, gid, sizeof(gid));
	snprintf(caps->description, sizeof(caps->description),
		 "%.32s port %u %.64s mtu %u", choice->verbs->device->name,
		 choice->port, gid, 128u << choice->port_attr.active_mtu);
}

static int caps_query(struct rbx_verbs_device *device,
		      const struct rbx_verbs_choice *choice, char *error)
{
	struct rbx_device_caps *caps = &device->device.caps;
	struct ibv_device_attr attr;
	int err = ibv_query_device(device->verbs, &attr);

	if (err)
		return rbx_verbs_explain(error, -err,
			"%s does not answer: %s; see the kernel log",
			device->verbs->device->name, strerror(err));
	caps_describe(caps, choice);
	snprintf(caps->name, sizeof(caps->name), "%.32s:%u",
		 choice->verbs->device->name, choice->port);
	caps->max_qp = (uint32_t)attr.max_qp;
	caps->max_sge = (uint32_t)attr.max_sge;
	if (attr.max_sge_rd > 0 && attr.max_sge_rd < attr.max_sge)
		caps->max_sge = (uint32_t)attr.max_sge_rd;
	caps->max_recv_sge = (uint32_t)attr.max_sge;
	caps->max_srq_wr = attr.max_srq > 0 ? (uint32_t)attr.max_srq_wr : 0;
	caps->max_srq_sge = (uint32_t)attr.max_srq_sge;
	caps->completion_vectors =
		(uint32_t)RBX_MAX(device->verbs->num_comp_vectors, 1);
	caps->has_service_level = true;
	caps->has_dmabuf = true; /* the system knows for which memory */
	device->has_windows =
		attr.device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A |
					 IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	caps->has_window_invalidate = device->has_windows;
	caps->has_immediate = true;
	caps->has_invalidate =
		attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS;
	caps->has_atomics = attr.atomic_cap != IBV_ATOMIC_NONE;
	caps->max_message_bytes = choice->port_attr.max_msg_sz;
	caps->max_send_wr = (uint32_t)attr.max_qp_wr;
	caps->max_recv_wr = (uint32_t)attr.max_qp_wr;
	caps->max_cqe = (uint32_t)attr.max_cqe;
	/* The messages of the connection manager are of a fixed size. */
	caps->connect_data_bytes = RBX_CONNECT_DATA_MAX;
	caps->accept_data_bytes = RBX_ACCEPT_DATA_MAX;
	caps->reject_data_bytes = RBX_REJECT_DATA_MAX;
	device->max_responder_resources =
		(uint8_t)(attr.max_qp_rd_atom < UINT8_MAX ?
				  attr.max_qp_rd_atom : UINT8_MAX);
	device->max_initiator_depth =
		(uint8_t)(attr.max_qp_init_rd_atom < UINT8_MAX ?
				  attr.max_qp_init_rd_atom : UINT8_MAX);
	return 0;
}

/*
 * A program that names the device or the gid wants connections to leave through it, even if
 * the routes prefer another: so they leave from its address.
 */
static void source_set(struct rbx_verbs_device *device,
		       const struct rbx_device_options *options,
		       const struct rbx_verbs_choice *choice)
{
	device->source.ss_family = AF_UNSPEC;
	if (options && (options->device_name || options->gid_index >= 0))
		rbx_verbs_gid_to_address(&choice->gid, &device->source);
}

/* Makes the domain, and finds out what needs one. */
static int domain_create(struct rbx_verbs_device *device,
			 const struct rbx_device_options *options, char *error)
{
	int err;

	device->pd = ibv_alloc_pd(device->verbs);
	if (!device->pd)
		return rbx_verbs_explain(error, -errno,
			"%s cannot create a protection domain: %s; see the kernel log",
			device->verbs->device->name, strerror(errno));
	if (options && options->on_demand_paging) {
		err = rbx_verbs_on_demand_enable(device, error);
		if (err) {
			ibv_dealloc_pd(device->pd);
			return err;
		}
	}
	device->device.caps.max_inline_bytes =
		rbx_verbs_qp_probe_inline_bytes(device);
	return 0;
}

static void domain_destroy(struct rbx_verbs_device *device)
{
	if (device->any_mr)
		ibv_dereg_mr(device->any_mr);
	ibv_dealloc_pd(device->pd);
}

int rbx_verbs_open(const struct rbx_device_options *options,
		   struct rbx_device **opened, char *error)
{
	struct rbx_verbs_device *device;
	struct rbx_verbs_choice choice;
	int err = rbx_verbs_choose(options, &choice, error);

	if (err)
		return err;
	device = calloc(1, sizeof(*device));
	if (!device) {
		err = rbx_verbs_explain(error, -ENOMEM, "out of memory");
		goto out_release_choice;
	}
	device->device.ops = &rbx_fabric_verbs;
	device->contexts = choice.contexts;
	device->verbs = choice.verbs;
	device->port = choice.port;
	device->traffic_class = options ? options->traffic_class : 0;
	source_set(device, options, &choice);
	rbx_verbs_qp_table_init(&device->qps);
	err = caps_query(device, &choice, error);
	if (err)
		goto out_free_device;
	err = domain_create(device, options, error);
	if (err)
		goto out_free_device;
	err = rbx_device_events_open(&device->events, &device->device);
	if (err) {
		rbx_verbs_explain(error, err,
			"no descriptor for events: %s; raise the limit on "
			"files (`ulimit -n`)", strerror(-err));
		goto out_destroy_domain;
	}
	rbx_verbs_events_watch(device);
	err = rbx_verbs_cm_thread_start(device, error);
	if (err)
		goto out_close_events;
	*opened = &device->device;
	return 0;

out_close_events:
	rbx_verbs_events_unwatch(device);
	rbx_device_events_close(&device->events);
out_destroy_domain:
	domain_destroy(device);
out_free_device:
	rbx_verbs_qp_table_destroy(&device->qps);
	free(device);
out_release_choice:
	rbx_verbs_choose_release(&choice);
	return err;
}

void rbx_verbs_close(struct rbx_device *opened)
{
	struct rbx_verbs_device *device = rbx_verbs_device(opened);

	rbx_verbs_cm_thread_stop(device);
	rbx_verbs_events_unwatch(device);
	rbx_device_events_close(&device->events);
	domain_destroy(device);
	rbx_verbs_qp_table_destroy(&device->qps);
	rdma_free_devices(device->contexts);
	free(device);
}
