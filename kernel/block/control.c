/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * control.c - rdmabox_block.ko: makes and removes its devices in configfs.
 *
 *	cd /sys/kernel/config/rdmabox && mkdir swap && cd swap
 *	echo 10.0.0.1:7471,10.0.0.2:7471 >servers
 *	echo 68719476736 >size; echo 2 >replicas; cat /etc/rdmabox/secret >secret
 *	echo 1 >attached; cat device		# rdmabox0
 *	echo 0 >attached; cd ..; rmdir swap
 *
 * A directory is a volume with its options. They are set one by one and take effect when
 * it is attached; from then on they cannot be changed, but for three: `servers` (what is new in
 * the list is added), `peer_timeout_ms`, and `secret`. Configfs is made for this: a
 * device is made by whoever wants one, and its options are not options of the module. A
 * directory whose volume is attached cannot be removed, and the module cannot be unloaded
 * while there are directories.
 *
 * With the name of a volume that its servers keep in `volume`, that one is attached as it was
 * made, so size and replicas must be as they are in a new directory, and checksums is not
 * looked at. If another client has it open, `holder` says who, and `take_over` shuts that one
 * out. While it is attached, size, replicas and checksums are what it has.
 *
 * What is written to `add_server` while it is attached, 10.0.0.3:7471, is one more server, and is
 * added to `servers`.
 *
 * The numbers of an attached volume are files in the same directory. They cannot be read
 * (ENXIO) if the volume is not attached or has no backup. Attaching and detaching take as
 * long as the servers do. Meanwhile nothing else waits: the volume counts as not attached
 * and cannot be changed (EBUSY).
 */
#include <linux/configfs.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "core/modes.h"
#include "kernel/block/ending.h"
#include "kernel/block/item.h"

static struct volume_item *volume_item(struct config_item *item)
{
	return container_of(item, struct volume_item, item);
}

/* ---- Options --------------------------------------------------------------------*/

/* Copies a text, without a newline at its end; "" is NULL. */
static int text_set(struct volume_item *volume, const char **text,
		    const char *page, size_t count)
{
	char *copy = NULL;
	int err = -EBUSY;

	if (count && page[count - 1] == '\n')
		count--;
	if (count) {
		copy = kmemdup_nul(page, count, GFP_KERNEL);
		if (!copy)
			return -ENOMEM;
	}
	mutex_lock(&volume->lock);
	if (!rbx_item_is_used_locked(volume)) {
		swap(*text, *(const char **)&copy);
		err = 0;
	}
	mutex_unlock(&volume->lock);
	kfree(copy);
	return err;
}

/* A text that may be read back. */
#define TEXT_SHOW(name, text)                                               \
	static ssize_t volume_##name##_show(struct config_item *item,       \
					    char *page)                     \
	{                                                                   \
		struct volume_item *volume = volume_item(item);             \
		ssize_t count;                                              \
									    \
		mutex_lock(&volume->lock);                                  \
		count = sysfs_emit(page, "%s\n", text);                     \
		mutex_unlock(&volume->lock);                                \
		return count;                                               \
	}

#define TEXT_OPTION(name, field)                                            \
	TEXT_SHOW(name, volume->field ?: "")                                \
	static ssize_t volume_##name##_store(struct config_item *item,      \
					     const char *page, size_t count) \
	{                                                                   \
		struct volume_item *volume = volume_item(item);             \
		int err = text_set(volume, &volume->field, page, count);    \
									    \
		return err ? err : (ssize_t)count;                          \
	}                                                                   \
	CONFIGFS_ATTR(volume_, name)

TEXT_SHOW(servers, volume->options.servers ?: "")

static ssize_t volume_servers_store(struct config_item *item, const char *page, size_t count)
{
	char *servers = kstrndup(page, count, GFP_KERNEL);
	int err = servers ? rbx_item_set_servers(volume_item(item), strim(servers)) : -ENOMEM;

	kfree(servers);
	return err ? err : (ssize_t)count;
}
CONFIGFS_ATTR(volume_, servers);

TEXT_OPTION(credential, options.credential);
TEXT_OPTION(volume, options.volume);
TEXT_OPTION(backup, backup.device);

static ssize_t volume_secret_store(struct config_item *item, const char *page,
				   size_t count)
{
	size_t bytes = count && page[count - 1] == '\n' ? count - 1 : count;
	int err = rbx_item_set_secret(volume_item(item), page, bytes);

	return err ? err : (ssize_t)count;
}
CONFIGFS_ATTR_WO(volume_, secret);

static ssize_t volume_mode_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n",
			  READ_ONCE(volume_item(item)->options.mode));
}

static ssize_t volume_mode_store(struct config_item *item, const char *page,
				 size_t count)
{
#define NAME(name, merge, chain) name,
	static const char *const modes[] = { RBX_MODES(NAME) };
#undef NAME
	struct volume_item *volume = volume_item(item);
	int i = sysfs_match_string(modes, page), err = i;

	if (i < 0)
		return i;
	mutex_lock(&volume->lock);
	err = rbx_item_is_used_locked(volume) ? -EBUSY : 0;
	if (!err)
		WRITE_ONCE(volume->options.mode, modes[i]);
	mutex_unlock(&volume->lock);
	return err ? err : (ssize_t)count;
}
CONFIGFS_ATTR(volume_, mode);

/* How a number is set that is an option; only while the volume is not attached. */
#define NUMBER_STORE(name, field, type, parse)                                \
	static ssize_t volume_##name##_store(struct config_item *item,        \
					     const char *page, size_t count)  \
	{                                                                     \
		struct volume_item *volume = volume_item(item);               \
		type value;                                                   \
		int err = parse(page, 0, &value);                             \
									      \
		if (err)                                                      \
			return err;                                           \
		mutex_lock(&volume->lock);                                    \
		err = rbx_item_is_used_locked(volume) ? -EBUSY : 0;                    \
		if (!err)                                                     \
			WRITE_ONCE(volume->field, value);                     \
		mutex_unlock(&volume->lock);                                  \
		return err ? err : (ssize_t)count;                            \
	}                                                                     \
	CONFIGFS_ATTR(volume_, name)

#define NUMBER_SHOW(name, field)                                              \
	static ssize_t volume_##name##_show(struct config_item *item,         \
					    char *page)                       \
	{                                                                     \
		return sysfs_emit(page, "%llu\n",                             \
				  (u64)READ_ONCE(                             \
					  volume_item(item)->field));         \
	}

#define NUMBER_OPTION(name, field, type, parse)                               \
	NUMBER_SHOW(name, field)                                              \
	NUMBER_STORE(name, field, type, parse)

/* One that a named volume has by itself. get: what it is while it is attached. */
#define SHAPE_OPTION(name, field, type, parse, get)                           \
	static ssize_t volume_##name##_show(struct config_item *item,         \
					    char *page)                       \
	{                                                                     \
		struct volume_item *volume = volume_item(item);               \
		u64 value;                                                    \
									      \
		mutex_lock(&volume->lock);                                    \
		value = volume->disk ? get(rbx_disk_volume(volume->disk)) :   \
				       volume->field;                         \
		mutex_unlock(&volume->lock);                                  \
		return sysfs_emit(page, "%llu\n", value);                     \
	}                                                                     \
	NUMBER_STORE(name, field, type, parse)

static int bool_parse(const char *page, unsigned int base, bool *value)
{
	return kstrtobool(page, value);
}

SHAPE_OPTION(size, options.size_bytes, u64, kstrtou64, rbx_volume_size_bytes);
SHAPE_OPTION(replicas, options.replicas, u32, kstrtou32, rbx_volume_replicas);
NUMBER_OPTION(take_over, options.take_over, bool, bool_parse);
NUMBER_OPTION(queue_pairs, options.queue_pairs, u32, kstrtou32);
NUMBER_OPTION(queue_depth, options.ios_max, u32, kstrtou32);
NUMBER_OPTION(copy_rate, options.copy_rate, u64, kstrtou64);
NUMBER_OPTION(crash_copy, options.crash_copy, u64, kstrtou64);
NUMBER_OPTION(insecure, options.insecure, bool, bool_parse);
NUMBER_OPTION(on_demand, options.on_demand, bool, bool_parse);
SHAPE_OPTION(checksums, options.checksums, bool, bool_parse, rbx_volume_has_checksums);
NUMBER_OPTION(backup_buffer, backup.buffer_bytes, u64, kstrtou64);

NUMBER_SHOW(peer_timeout_ms, options.peer_timeout_ms)

static ssize_t volume_peer_timeout_ms_store(struct config_item *item, const char *page,
					    size_t count)
{
	u32 value;
	int err = kstrtou32(page, 0, &value);

	if (!err)
		err = rbx_item_set_peer_timeout(volume_item(item), value);
	return err ? err : (ssize_t)count;
}
CONFIGFS_ATTR(volume_, peer_timeout_ms);

/* ---- Attach and detach ------------------------------------------------------------*/

static struct configfs_subsystem subsystem;

static ssize_t volume_attached_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", !!READ_ONCE(volume_item(item)->disk));
}

static ssize_t volume_attached_store(struct config_item *item, const char *page,
				     size_t count)
{
	bool wanted;
	int err = kstrtobool(page, &wanted);

	if (!err)
		err = rbx_item_attach(volume_item(item), &subsystem, wanted);
	return err ? err : (ssize_t)count;
}
CONFIGFS_ATTR(volume_, attached);

static ssize_t volume_add_server_store(struct config_item *item, const char *page,
				       size_t count)
{
	char *server = kstrndup(page, count, GFP_KERNEL);
	int err = server ? rbx_item_add_server(volume_item(item), strim(server)) : -ENOMEM;

	kfree(server);
	return err ? err : (ssize_t)count;
}
CONFIGFS_ATTR_WO(volume_, add_server);

static ssize_t volume_device_show(struct config_item *item, char *page)
{
	struct volume_item *volume = volume_item(item);
	ssize_t count = -ENXIO;

	mutex_lock(&volume->lock);
	if (volume->disk)
		count = sysfs_emit(page, "%s\n", rbx_disk_name(volume->disk));
	mutex_unlock(&volume->lock);
	return count;
}
CONFIGFS_ATTR_RO(volume_, device);

TEXT_SHOW(holder, volume->holder)
CONFIGFS_ATTR_RO(volume_, holder);

/* ---- Numbers ------------------------------------------------------------------*/

/* The fields of struct rbx_volume_status: each is a file of its name. */
#define NUMBERS(X)                                                        \
	X(servers_up) X(slabs) X(slabs_whole) X(slabs_blank)              \
	X(slabs_rebuilding) X(slabs_last) X(slabs_lost) X(slabs_holed)    \
	X(slabs_together) X(rebuilt_bytes) X(replicas_moved)              \
	X(work_requests) X(doorbells) X(merged_requests)                  \
	X(window_waits) X(retries) X(failovers) X(checksum_errors)        \
	X(checksum_repairs)                                               \
	X(window_bytes) X(inflight_bytes) X(inflight_bytes_max)           \
	X(completions) X(polls) X(empty_polls) X(arms) X(wakeups)

/* The same for struct rbx_backup_status. */
#define BACKUP_NUMBERS(X)                               \
	X(backup_writes) X(backup_reads) X(backup_waits) \
	X(backup_errors) X(backup_lag_bytes)

static int status_of(struct volume_item *volume,
		     struct rbx_volume_status *status)
{
	int err = -ENXIO;

	mutex_lock(&volume->lock);
	if (volume->disk) {
		rbx_volume_status(rbx_disk_volume(volume->disk), status);
		err = 0;
	}
	mutex_unlock(&volume->lock);
	return err;
}

static int backup_status_of(struct volume_item *volume,
			    struct rbx_backup_status *status)
{
	int err = -ENXIO;

	mutex_lock(&volume->lock);
	if (volume->disk && rbx_disk_backup(volume->disk)) {
		rbx_backup_status(rbx_disk_backup(volume->disk), status);
		err = 0;
	}
	mutex_unlock(&volume->lock);
	return err;
}

#define NUMBER_OF(name, type, get)                                       \
	static ssize_t volume_##name##_show(struct config_item *item,    \
					    char *page)                  \
	{                                                                \
		struct type status;                                      \
		int err = get(volume_item(item), &status);               \
									 \
		return err ? err :                                       \
			     sysfs_emit(page, "%llu\n", (u64)status.name); \
	}                                                                \
	CONFIGFS_ATTR_RO(volume_, name);
#define NUMBER(name) NUMBER_OF(name, rbx_volume_status, status_of)
#define BACKUP_NUMBER(name) NUMBER_OF(name, rbx_backup_status, backup_status_of)

NUMBERS(NUMBER)
BACKUP_NUMBERS(BACKUP_NUMBER)

/* ---- Directories ----------------------------------------------------------------*/

#define NUMBER_ATTRIBUTE(name) &volume_attr_##name,

static struct configfs_attribute *volume_attributes[] = {
	&volume_attr_servers,
	&volume_attr_secret,
	&volume_attr_credential,
	&volume_attr_volume,
	&volume_attr_take_over,
	&volume_attr_mode,
	&volume_attr_size,
	&volume_attr_replicas,
	&volume_attr_queue_pairs,
	&volume_attr_queue_depth,
	&volume_attr_peer_timeout_ms,
	&volume_attr_copy_rate,
	&volume_attr_crash_copy,
	&volume_attr_insecure,
	&volume_attr_on_demand,
	&volume_attr_checksums,
	&volume_attr_backup,
	&volume_attr_backup_buffer,
	&volume_attr_attached,
	&volume_attr_device,
	&volume_attr_add_server,
	&volume_attr_holder,
	NUMBERS(NUMBER_ATTRIBUTE)
	BACKUP_NUMBERS(NUMBER_ATTRIBUTE)
	NULL,
};

static void volume_release(struct config_item *item)
{
	struct volume_item *volume = volume_item(item);

	kfree(volume->options.servers);
	kfree(volume->options.credential);
	kfree(volume->options.volume);
	kfree(volume->backup.device);
	kfree_sensitive(volume->options.secret);
	kfree(volume);
}

static struct configfs_item_operations volume_operations = {
	.release = volume_release,
};

static const struct config_item_type volume_type = {
	.ct_item_ops = &volume_operations,
	.ct_attrs = volume_attributes,
	.ct_owner = THIS_MODULE,
};

static struct config_item *volume_make(struct config_group *group,
				       const char *name)
{
	struct volume_item *volume = kzalloc(sizeof(*volume), GFP_KERNEL);

	if (!volume)
		return ERR_PTR(-ENOMEM);
	mutex_init(&volume->lock);
	rbx_volume_options_defaults(&volume->options);
	volume->options.on_demand = true;
	volume->options.checksums = true;
	rbx_backup_options_defaults(&volume->backup);
	config_item_init_type_name(&volume->item, name, &volume_type);
	return &volume->item;
}

static struct configfs_group_operations group_operations = {
	.make_item = volume_make,
};

static const struct config_item_type subsystem_type = {
	.ct_group_ops = &group_operations,
	.ct_owner = THIS_MODULE,
};

static struct configfs_subsystem subsystem = {
	.su_group.cg_item = {
		.ci_namebuf = "rdmabox",
		.ci_type = &subsystem_type,
	},
};

static int __init block_init(void)
{
	rbx_endings_init();
	config_group_init(&subsystem.su_group);
	mutex_init(&subsystem.su_mutex);
	return configfs_register_subsystem(&subsystem);
}

static void __exit block_exit(void)
{
	configfs_unregister_subsystem(&subsystem);
	rbx_endings_exit();
}

module_init(block_init);
module_exit(block_exit);

MODULE_DESCRIPTION("RDMAbox: block devices in remote memory");
MODULE_AUTHOR("The RDMAbox authors");
MODULE_VERSION(RBX_KERNEL_VERSION);
MODULE_LICENSE("Dual BSD/GPL");
