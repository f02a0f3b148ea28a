/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds and opens a UCT interface for reliable connections over verbs.
 *
 * UCT is a tree: components have memory domains, which have transports on devices. This
 * searches it for the first device with the transport "rc_verbs". There is no choice among
 * several devices.
 */
#include "uct_device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ucx_status.h"

static int interface_open(struct uct_device *device, const char *name)
{
	uct_iface_params_t params = {
		.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE,
		.open_mode = UCT_IFACE_OPEN_MODE_DEVICE,
		.mode.device = { .tl_name = UCT_DEVICE_TRANSPORT, .dev_name = name },
	};
	uct_iface_config_t *config;
	int err;

	err = error_from_ucs(uct_md_iface_config_read(device->md, UCT_DEVICE_TRANSPORT, NULL, NULL,
						      &config));
	if (err)
		return err;
	err = error_from_ucs(uct_iface_open(device->md, device->worker, &params, config,
					    &device->iface));
	uct_config_release(config);
	if (err)
		return err;
	uct_iface_progress_enable(device->iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
	return error_from_ucs(uct_iface_query(device->iface, &device->attr));
}

/* Opens the wanted transport if the memory domain has it: 0, or -ENODEV if not. */
static int transport_open(struct uct_device *device)
{
	uct_tl_resource_desc_t *transports;
	unsigned int count, i;
	int err;

	err = error_from_ucs(uct_md_query_tl_resources(device->md, &transports, &count));
	if (err)
		return err;
	err = -ENODEV;
	for (i = 0; i < count && err == -ENODEV; i++) {
		if (!strcmp(transports[i].tl_name, UCT_DEVICE_TRANSPORT))
			err = interface_open(device, transports[i].dev_name);
	}
	uct_release_tl_resource_list(transports);
	return err;
}

static int domain_open(struct uct_device *device, uct_component_h component, const char *name)
{
	uct_md_config_t *config;
	int err;

	err = error_from_ucs(
		uct_md_config_read(component, NULL, NULL, &config));
	if (err)
		return err;
	err = error_from_ucs(uct_md_open(component, name, config, &device->md));
	uct_config_release(config);
	if (err)
		return err;
	device->component = component;
	err = error_from_ucs(uct_md_query(device->md, &device->md_attr));
	if (!err)
		err = transport_open(device);
	if (err && !device->iface) {
		uct_md_close(device->md);
		device->md = NULL;
	}
	return err;
}

static int component_open(struct uct_device *device, uct_component_h component)
{
	uct_component_attr_t attr = { .field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT };
	unsigned int i;
	int err;

	err = error_from_ucs(uct_component_query(component, &attr));
	if (err || !attr.md_resource_count)
		return err ? err : -ENODEV;
	attr.md_resources = calloc(attr.md_resource_count, sizeof(*attr.md_resources));
	if (!attr.md_resources)
		return -ENOMEM;
	attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
	err = error_from_ucs(uct_component_query(component, &attr));
	if (!err)
		err = -ENODEV;
	for (i = 0; i < attr.md_resource_count && err == -ENODEV; i++)
		err = domain_open(device, component, attr.md_resources[i].md_name);
	free(attr.md_resources);
	return err;
}

int uct_device_open(struct uct_device *device)
{
	uct_component_h *components;
	unsigned int count, i;
	int err;

	err = error_from_ucs(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK,
						      &device->async));
	if (!err)
		err = error_from_ucs(uct_worker_create(device->async, UCS_THREAD_MODE_SINGLE,
						       &device->worker));
	if (!err)
		err = error_from_ucs(uct_query_components(&components, &count));
	if (err)
		return err;
	err = -ENODEV;
	for (i = 0; i < count && err == -ENODEV; i++)
		err = component_open(device, components[i]);
	uct_release_component_list(components);
	return err;
}

void uct_device_close(struct uct_device *device)
{
	if (device->iface)
		uct_iface_close(device->iface);
	if (device->md)
		uct_md_close(device->md);
	if (device->worker)
		uct_worker_destroy(device->worker);
	if (device->async)
		ucs_async_context_destroy(device->async);
}
