/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A UCT interface on an RDMA device, with all that belongs to it. */
#ifndef UCT_DEVICE_H
#define UCT_DEVICE_H

#include <uct/api/uct.h>

#define UCT_DEVICE_TRANSPORT "rc_verbs"

struct uct_device {
	ucs_async_context_t *async;
	uct_worker_h worker;
	uct_component_h component;
	uct_md_h md;
	uct_md_attr_t md_attr;
	uct_iface_h iface;
	uct_iface_attr_t attr;
};

/*
 * Opens reliable connections over verbs on the first device that has them.
 * Returns 0 or -errno; the caller closes @device in either case.
 */
int uct_device_open(struct uct_device *device);
void uct_device_close(struct uct_device *device);

#endif
