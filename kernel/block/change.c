/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * change.c - attaches and detaches the volume of a directory, and changes it meanwhile; see item.h.
 */
#include <linux/slab.h>

#include "kernel/block/item.h"

/* 0: only the caller may change it now. -EBUSY: another thread is changing it. */
static int change_begin(struct volume_item *volume, struct rbx_disk **disk)
{
	int err = -EBUSY;

	mutex_lock(&volume->lock);
	if (!volume->changing) {
		volume->changing = true;
		*disk = volume->disk;
		err = 0;
	}
	mutex_unlock(&volume->lock);
	return err;
}

static void disk_set(struct volume_item *volume, struct rbx_disk *disk)
{
	mutex_lock(&volume->lock);
	volume->disk = disk;
	mutex_unlock(&volume->lock);
}

static void change_end(struct volume_item *volume)
{
	mutex_lock(&volume->lock);
	volume->changing = false;
	mutex_unlock(&volume->lock);
}

static int attach(struct volume_item *volume, struct configfs_subsystem *subsystem)
{
	struct rbx_volume_options options = volume->options;
	char holder[RBX_HOLDER_BYTES] = "";
	struct rbx_disk *disk;
	/* From now on its directory stays as long as it is attached. Later this could not
	 * be undone, as the device may be in use. */
	int err = configfs_depend_item_unlocked(subsystem, &volume->item);

	if (err)
		return err;
	options.holder = holder;
	err = rbx_disk_attach(&options, &volume->backup,
			      config_item_name(&volume->item), &disk);
	mutex_lock(&volume->lock);
	strscpy(volume->holder, holder, sizeof(volume->holder));
	mutex_unlock(&volume->lock);
	if (err)
		configfs_undepend_item(&volume->item);
	else
		disk_set(volume, disk);
	return err;
}

static int detach(struct volume_item *volume, struct configfs_subsystem *subsystem,
		  struct rbx_disk *disk)
{
	int err = rbx_disk_leave(disk);

	if (err)
		return err;
	disk_set(volume, NULL); /* no thread reads its numbers after this */
	rbx_disk_detach(disk);
	configfs_undepend_item(&volume->item);
	return 0;
}

int rbx_item_attach(struct volume_item *volume, struct configfs_subsystem *subsystem, bool wanted)
{
	struct rbx_disk *disk;
	int err = change_begin(volume, &disk);

	if (err)
		return err;
	if (wanted)
		err = disk ? -EBUSY : attach(volume, subsystem);
	else if (disk)
		err = detach(volume, subsystem, disk);
	change_end(volume);
	return err;
}

/* ---- One more server -------------------------------------------------------------------*/

/* Only the thread that changes it frees what was there, so it may be read without the lock
 * meanwhile. Takes the text. */
static void text_put(struct volume_item *volume, const char **text, char *taken)
{
	mutex_lock(&volume->lock);
	swap(*text, *(const char **)&taken);
	mutex_unlock(&volume->lock);
	kfree(taken);
}

static bool is_listed(const char *servers, const char *server)
{
	size_t length = strlen(server);
	const char *at = servers;

	for (; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (!strncmp(at, server, length) && (!at[length] || at[length] == ','))
			return true;
	return false;
}

/* The next attach needs it as well. */
static int server_add(struct volume_item *volume, struct rbx_disk *disk, const char *server)
{
	char *servers = is_listed(volume->options.servers, server) ?
				kstrdup(volume->options.servers, GFP_KERNEL) :
				kasprintf(GFP_KERNEL, "%s,%s", volume->options.servers, server);
	int err;

	if (!servers)
		return -ENOMEM;
	err = rbx_volume_add_server(rbx_disk_volume(disk), server);
	if (err)
		kfree(servers);
	else
		text_put(volume, &volume->options.servers, servers);
	return err;
}

int rbx_item_add_server(struct volume_item *volume, const char *server)
{
	struct rbx_disk *disk;
	int err = change_begin(volume, &disk);

	if (err)
		return err;
	err = disk ? server_add(volume, disk, server) : -ENXIO;
	change_end(volume);
	return err;
}

/* ---- Options, attached or not ----------------------------------------------------------*/

/* list: is cut into its parts. */
static int new_servers_add(struct volume_item *volume, struct rbx_disk *disk, char *list)
{
	char *server;
	int err = 0;

	while (!err && (server = strsep(&list, ",")))
		if (!is_listed(volume->options.servers, server))
			err = server_add(volume, disk, server);
	return err;
}

static int servers_set(struct volume_item *volume, struct rbx_disk *disk, const char *servers)
{
	char *copy = *servers ? kstrdup(servers, GFP_KERNEL) : NULL;
	int err = 0;

	if (*servers && !copy)
		return -ENOMEM;
	if (!disk) {
		text_put(volume, &volume->options.servers, copy);
		return 0;
	}
	if (copy)
		err = new_servers_add(volume, disk, copy);
	kfree(copy);
	return err;
}

int rbx_item_set_servers(struct volume_item *volume, const char *servers)
{
	struct rbx_disk *disk;
	int err = change_begin(volume, &disk);

	if (err)
		return err;
	err = servers_set(volume, disk, servers);
	change_end(volume);
	return err;
}

int rbx_item_set_peer_timeout(struct volume_item *volume, u32 peer_timeout_ms)
{
	struct rbx_disk *disk;
	int err = change_begin(volume, &disk);

	if (err)
		return err;
	if (disk)
		err = rbx_volume_set_peer_timeout(rbx_disk_volume(disk), peer_timeout_ms);
	if (!err)
		WRITE_ONCE(volume->options.peer_timeout_ms, peer_timeout_ms);
	change_end(volume);
	return err;
}

static int secret_set(struct volume_item *volume, struct rbx_disk *disk, const void *secret,
		      size_t secret_bytes)
{
	void *copy = secret_bytes ? kmemdup(secret, secret_bytes, GFP_KERNEL) : NULL;
	int err = secret_bytes && !copy ? -ENOMEM : 0;

	if (!err && disk)
		err = rbx_volume_set_secret(rbx_disk_volume(disk), copy, secret_bytes);
	if (!err) {
		mutex_lock(&volume->lock);
		swap(*(void **)&volume->options.secret, copy);
		volume->options.secret_bytes = secret_bytes;
		mutex_unlock(&volume->lock);
	}
	kfree_sensitive(copy);
	return err;
}

int rbx_item_set_secret(struct volume_item *volume, const void *secret, size_t secret_bytes)
{
	struct rbx_disk *disk;
	int err = change_begin(volume, &disk);

	if (err)
		return err;
	err = secret_set(volume, disk, secret, secret_bytes);
	change_end(volume);
	return err;
}
