/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * state.c - how the volume of a device is, for people and for udev:
 *
 *	/sys/block/rdmabox0/rdmabox/state	whole, rebuilding, degraded or lost (kernel/api.h)
 *	/sys/block/rdmabox0/rdmabox/servers	a line for each server: address, state, replicas,
 *						free bytes
 *
 * When the state changes, the device has a uevent "change" with RDMABOX_STATE=lost and so on: at
 * most one a second. If there are more servers than fit into a page, the last line is "...".
 */
#include <linux/blkdev.h>
#include <linux/mutex.h>

#include "kernel/block/disk.h"

static struct rbx_volume *volume_of(struct device *device)
{
	return rbx_disk_volume(dev_to_disk(device)->private_data);
}

/* ---- Files ----------------------------------------------------------------------------*/

static ssize_t state_show(struct device *device, struct device_attribute *attribute, char *page)
{
	return sysfs_emit(page, "%s\n", rbx_volume_state_name(rbx_volume_state(volume_of(device))));
}
struct device_attribute rbx_disk_attribute_state = __ATTR_RO(state);

#define MORE "...\n"
#define LINE_BYTES (RBX_SERVER_ADDRESS_BYTES + 50)

static ssize_t servers_show(struct device *device, struct device_attribute *attribute, char *page)
{
	struct rbx_volume *volume = volume_of(device);
	struct rbx_server_status status;
	ssize_t count = 0;
	u32 i;

	for (i = 0; !rbx_volume_server_status(volume, i, &status); i++) {
		if (count > (ssize_t)(PAGE_SIZE - LINE_BYTES - sizeof(MORE)))
			return count + sysfs_emit_at(page, (int)count, MORE);
		count += sysfs_emit_at(page, (int)count, "%s %s %u %llu\n", status.address,
				       status.state, status.slabs, status.free_bytes);
	}
	return count;
}
struct device_attribute rbx_disk_attribute_servers = __ATTR_RO(servers);

/* ---- Uevents --------------------------------------------------------------------------*/

void rbx_disk_events_init(struct rbx_disk_events *events)
{
	mutex_init(&events->lock);
	events->disk = NULL;
}

void rbx_disk_events_show(struct rbx_disk_events *events, struct gendisk *disk)
{
	mutex_lock(&events->lock);
	events->disk = disk;
	mutex_unlock(&events->lock);
}

void rbx_disk_state_changed(void *user, enum rbx_volume_state state)
{
	struct rbx_disk_events *events = user;
	char text[sizeof("RDMABOX_STATE=rebuilding")];
	char *variables[] = { text, NULL };

	snprintf(text, sizeof(text), "RDMABOX_STATE=%s", rbx_volume_state_name(state));
	mutex_lock(&events->lock);
	if (events->disk)
		kobject_uevent_env(&disk_to_dev(events->disk)->kobj, KOBJ_CHANGE, variables);
	mutex_unlock(&events->lock);
}
