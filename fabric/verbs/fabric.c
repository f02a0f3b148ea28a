/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fabric.c - the table of the verbs fabric: an RDMA NIC under libibverbs. */
#include "fabric/verbs/verbs.h"

const struct rbx_fabric_ops rbx_fabric_verbs = {
	.name = "verbs",
	.probe = rbx_verbs_probe,
	.open = rbx_verbs_open,
	.close = rbx_verbs_close,
	.create_domain = rbx_verbs_create_domain,
	.destroy_domain = rbx_verbs_destroy_domain,
	.register_memory = rbx_verbs_register_memory,
	.deregister_memory = rbx_verbs_deregister_memory,
	.create_cq = rbx_verbs_create_cq,
	.destroy_cq = rbx_verbs_destroy_cq,
	.poll = rbx_verbs_poll,
	.arm = rbx_verbs_arm,
	.consume_events = rbx_verbs_consume_events,
	.connect = rbx_verbs_connect,
	.listen = rbx_verbs_listen,
	.close_listener = rbx_verbs_close_listener,
	.get_request = rbx_verbs_get_request,
	.accept = rbx_verbs_accept,
	.reject = rbx_verbs_reject,
	.disconnect = rbx_verbs_disconnect,
	.destroy_qp = rbx_verbs_destroy_qp,
	.post_send = rbx_verbs_post_send,
	.post_recv = rbx_verbs_post_recv,
	.get_event = rbx_verbs_get_event,
	.native_device = rbx_verbs_native_device,
	.native_qp = rbx_verbs_native_qp,
};
