/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * link_test.c - opens verbs links when it is told to: rdmabox_link_test.ko.
 *
 * While it is loaded it is connected to a server. A write to its parameter `open` opens a
 * link and closes it again. The write fails if the opening does. rdmabox_faults.ko makes
 * it fail. The script then checks in the RDMA stack that everything was given back
 * (tests/lab/kernel_link.sh).
 */
#include <linux/module.h>

#include "kernel/api_peer.h"

static char *server;
module_param(server, charp, 0444);
MODULE_PARM_DESC(server, "host:port");

static struct rbx_peer *peer;

static int link_goes(struct ib_cq *cq)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {
			.max_send_wr = 2,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct rbx_verbs_link *link;
	int err = rbx_verbs_link_open(peer, &init, NULL, NULL, &link);

	if (!err)
		rbx_verbs_link_close(link);
	return err;
}

static int open_link(const char *text, const struct kernel_param *parameter)
{
	struct ib_pd *pd = peer ? rbx_peer_pd(peer) : NULL;
	struct ib_cq *cq;
	int err;

	if (!pd)
		return -ENOTCONN;
	cq = ib_alloc_cq(pd->device, NULL, 3, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	err = link_goes(cq);
	ib_free_cq(cq);
	pr_info("rdmabox_link_test: a link, status %d\n", err);
	return err;
}

static const struct kernel_param_ops open_operations = { .set = open_link };
module_param_cb(open, &open_operations, NULL, 0200);
MODULE_PARM_DESC(open, "opens a link and closes it");

static int __init link_test_init(void)
{
	const struct rbx_peer_options options = {
		.server = server,
		.peer_timeout_ms = 20000,
		.insecure = true,
	};

	return rbx_peer_connect(&options, &peer);
}

static void __exit link_test_exit(void)
{
	rbx_peer_disconnect(peer);
}

module_init(link_test_init);
module_exit(link_test_exit);

MODULE_DESCRIPTION("RDMAbox: a test of verbs links that cannot be opened");
MODULE_AUTHOR("The RDMAbox authors");
MODULE_LICENSE("Dual BSD/GPL");
