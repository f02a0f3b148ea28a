/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * device.c - the list of RDMA devices, as the RDMA stack reports them; see device.h.
 *
 * The stack calls remove() while the device still works, and removes the device when the
 * call has returned. The connection manager is called after us, as we registered later.
 * It waits for the connections that are destroyed here.
 */
#include <linux/slab.h>

#include "kernel/lib/context.h"
#include "kernel/lib/device.h"

struct present {
	struct list_head link; /* in the list of all; guarded by contexts_lock */
	struct ib_device *device;
};

static LIST_HEAD(all_present);
static struct ib_client client;

static int device_added(struct ib_device *device)
{
	struct present *present = kzalloc(sizeof(*present), GFP_KERNEL);
	unsigned int noio;

	if (!present)
		return -ENOMEM;
	present->device = device;
	ib_set_client_data(device, &client, present);
	noio = rbx_contexts_take();
	list_add(&present->link, &all_present);
	rbx_contexts_give(noio);
	return 0;
}

static void device_removed(struct ib_device *device, void *data)
{
	unsigned int noio = rbx_contexts_take();
	struct present *present = data;

	list_del(&present->link);
	rbx_contexts_give(noio);
	kfree(present);
	rbx_contexts_leave(device);
}

static struct ib_client client = {
	.name = "rdmabox",
	.add = device_added,
	.remove = device_removed,
};

bool rbx_device_is_there_locked(const struct ib_device *device)
{
	const struct present *present;

	lockdep_assert_held(&rbx_contexts_lock);
	list_for_each_entry(present, &all_present, link)
		if (present->device == device)
			return true;
	return false;
}

int rbx_devices_init(void)
{
	return ib_register_client(&client);
}

void rbx_devices_exit(void)
{
	ib_unregister_client(&client);
}
