/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * module.c - loads and unloads rdmabox.ko.
 */
#include <linux/module.h>

#include "kernel/api.h"
#include "kernel/lib/device.h"
#include "kernel/lib/endpoint/endpoint.h"
#include "kernel/lib/hmac.h"
#include "kernel/lib/session/sessions.h"
#include "kernel/selftest.h"

static bool selftest;
module_param(selftest, bool, 0444);
MODULE_PARM_DESC(selftest, "test the core in this kernel before it is used");

static int __init rdmabox_init(void)
{
	int err = rbx_hmac_open();

	if (err)
		return err;
	err = rbx_sessions_init();
	if (err)
		goto out_close_hmac;
	err = rbx_endpoints_init();
	if (err)
		goto out_exit_sessions;
	err = rbx_devices_init();
	if (err)
		goto out_exit_endpoints;
	if (selftest)
		err = rbx_selftest();
	if (!err)
		return 0;
	rbx_devices_exit();
out_exit_endpoints:
	rbx_endpoints_exit();
out_exit_sessions:
	rbx_sessions_exit();
out_close_hmac:
	rbx_hmac_close();
	return err;
}

static void __exit rdmabox_exit(void)
{
	rbx_devices_exit();
	rbx_endpoints_exit();
	rbx_sessions_exit();
	rbx_hmac_close();
}

module_init(rdmabox_init);
module_exit(rdmabox_exit);

MODULE_DESCRIPTION("RDMAbox: remote memory, merged, chained and paced");
MODULE_AUTHOR("The RDMAbox authors");
MODULE_VERSION(RBX_KERNEL_VERSION);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_SOFTDEP("pre: hmac sha256");
