/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox page attach and detach: a block device in other machines' memory, and swap on
 * it.
 *
 * Attaching makes a directory in configfs, writes the options to it and makes the kernel
 * attach it. If a step fails, everything is undone. The kernel's log has its reason in
 * words; this file explains its errno.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/page/page.h"

/* ---- Options to files -----------------------------------------------------------*/

static int number_write(const char *file, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	return page_write(page_wanted.name, file, text, strlen(text));
}

static int volume_write(void)
{
	int err = page_write(page_wanted.name, "volume", page_wanted.volume,
			     strlen(page_wanted.volume));

	return err ? err : number_write("take_over", page_wanted.take_over);
}

static int options_write(void)
{
	int err = page_write(page_wanted.name, "servers", page_wanted.pool,
			     strlen(page_wanted.pool));

	if (!err)
		err = page_write(page_wanted.name, "mode", page_wanted.mode,
				 strlen(page_wanted.mode));
	if (!err && !*page_wanted.volume)
		err = number_write("size", page_wanted.size_bytes);
	if (!err)
		err = number_write("replicas", page_wanted.replicas);
	if (!err)
		err = number_write("queue_pairs", page_wanted.queue_pairs);
	if (!err)
		err = number_write("queue_depth", page_wanted.queue_depth);
	if (!err)
		err = number_write("peer_timeout_ms", page_wanted.peer_timeout_ms);
	if (!err && page_wanted.copy_rate)
		err = number_write("copy_rate", page_wanted.copy_rate);
	if (!err && page_wanted.crash_copy)
		err = number_write("crash_copy", page_wanted.crash_copy);
	if (!err)
		err = number_write("insecure", page_wanted.insecure);
	if (!err)
		err = number_write("on_demand",
				   !page_wanted.reserve && !page_wanted.swap);
	if (!err)
		err = page_write(page_wanted.name, "checksums", page_wanted.checksums,
				 strlen(page_wanted.checksums));
	if (!err)
		err = number_write("backup_buffer", page_wanted.backup_buffer_bytes);
	if (!err && *page_wanted.volume)
		err = volume_write();
	if (!err && *page_wanted.credential)
		err = page_write(page_wanted.name, "credential", page_wanted.credential,
				 strlen(page_wanted.credential));
	if (!err && *page_wanted.backup)
		err = page_write(page_wanted.name, "backup", page_wanted.backup,
				 strlen(page_wanted.backup));
	if (err)
		cli_fail(&page_attach_command, "cannot set up the volume: %s",
			 strerror(-err));
	else if (*page_wanted.secret_file)
		err = page_secret_write(&page_attach_command, page_wanted.name,
					page_wanted.secret_file);
	return err;
}

/* udev opens a device that is new, or that was written to and closed, such as one whose
 * swap has just ended. This does not take long. An undo tries for longer, so that a slow
 * machine leaves nothing behind. */
#define DETACH_TRIES 10
#define UNDO_TRIES 100
#define DETACH_PAUSE_US 100000

static int detach(int tries)
{
	int err = page_write(page_wanted.name, "attached", "0", 1);

	for (int i = 1; err == -EBUSY && i < tries; i++) {
		usleep(DETACH_PAUSE_US);
		err = page_write(page_wanted.name, "attached", "0", 1);
	}
	return err;
}

/* ---- Attach ---------------------------------------------------------------------*/

static const char *attach_sentence(int err)
{
	switch (err) {
	case -EHOSTUNREACH:
	case -ECONNREFUSED:
	case -ETIMEDOUT:
		return "a server does not answer; see that it serves with --fabric verbs";
	case -ENODEV:
		return "a server is not reached through an RDMA device";
	case -EXDEV:
		return "a server is reached through one RDMA device more than a volume can use";
	case -EACCES:
		return "a server refuses the secret, or wants one; give its --secret-file";
	case -EPERM:
		return "a server is another machine; give a --secret-file, or say --insecure";
	case -ENOSPC:
	case -EDQUOT:
		return "the servers do not lend that much; ask for less, or name more servers";
	case -EOPNOTSUPP:
		return "a server is reached through an iWARP device, which is not supported";
	case -ENOENT:
	case -ENXIO:
		return "there is no such --backup device";
	case -ENOTBLK:
		return "the --backup is no block device";
	case -EBUSY:
		return "the --backup device is in use";
	case -EROFS:
		return "the --backup device cannot be written to";
	case -EFBIG:
		return "the --backup device is smaller than --size";
	case -EINTR:
		return "interrupted; nothing is attached";
	case -EINVAL:
		return "the kernel does not take these options, a server is named twice or has two of the "
		       "addresses, or the servers lend slabs of different sizes; its log (dmesg) says which";
	default:
		return strerror(-err);
	}
}

/* The same for what means something else for a named volume; or NULL. */
static const char *volume_sentence(int err)
{
	switch (err) {
	case -ENOENT:
		return "these servers have no volume of that name; rdmabox volume list shows those that "
		       "there are";
	case -EUSERS:
		return "a server has no room for another client; try again, or raise its --clients";
	case -ESTALE:
		return "another client has opened the volume meanwhile; try again";
	case -EACCES:
		return "a server refuses the secret, or the volume belongs to another --credential";
	case -E2BIG:
		return "the volume is too large for this machine: its map would take more than an "
		       "eighth of the memory";
	case -EHOSTUNREACH:
		return "servers are missing that may have data which no other one has; name all "
		       "servers of the volume, and see that they serve with --fabric verbs";
	case -EIO:
		return "the replicas cannot be made equal after a crash, as a server fails; try again";
	default:
		return NULL;
	}
}

static void attach_fail(int err)
{
	const char *volume = page_wanted.volume;
	const char *sentence = *volume ? volume_sentence(err) : NULL;
	char holder[PAGE_VALUE_MAX];

	if (err == -EBUSY && *volume &&
	    !page_read(page_wanted.name, "holder", holder, sizeof(holder)) && *holder)
		cli_fail(&page_attach_command, "volume %s is open by %s; close it there, or add --take-over",
			 volume, holder);
	else
		cli_fail(&page_attach_command, "%s", sentence ? sentence : attach_sentence(err));
}

static int attach_device(char *device, size_t device_bytes)
{
	int err = cli_interrupted() ? -EINTR : 0;

	page_kernel_log_begin();
	if (!err)
		err = page_write(page_wanted.name, "attached", "1", 1);
	page_kernel_log_end();
	if (!err)
		err = page_read(page_wanted.name, "device", device, device_bytes);
	if (err)
		attach_fail(err);
	return err;
}

int page_attach(int argc, char **argv)
{
	char device[PAGE_VALUE_MAX];
	int rc = cli_parse(&page_attach_command, argc, argv);

	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	rc = page_options_check();
	if (!rc)
		rc = page_pool_resolve(&page_attach_command, page_wanted.pool);
	if (rc)
		return rc;
	if (page_prepare(&page_attach_command))
		return CLI_EXIT_USAGE;
	cli_interrupt_catch(false); /* what was begun is undone */
	rc = page_make(page_wanted.name);
	if (rc)
		return cli_fail(&page_attach_command, rc == -EEXIST ? "there is a volume %s already; give another --name" :
				"cannot make volume %s: %s",
				page_wanted.name, strerror(-rc));
	if (options_write() || attach_device(device, sizeof(device)))
		goto out_remove;
	if (page_wanted.swap && page_swap_on(&page_attach_command, device, page_wanted.priority))
		goto out_detach;
	printf("/dev/%s\n", device);
	return CLI_EXIT_OK;

out_detach:
	(void)detach(UNDO_TRIES);
out_remove:
	(void)page_remove(page_wanted.name);
	return cli_interrupted() ? CLI_EXIT_SIGNAL + cli_interrupted() : CLI_EXIT_USAGE;
}

/* ---- Detach ---------------------------------------------------------------------*/

static int detach_device(const char *device)
{
	char users[512];
	int err = detach(DETACH_TRIES);

	if (err != -EBUSY)
		return err;
	page_users(device, users, sizeof(users));
	cli_fail(&page_detach_command, "/dev/%s is in use: %s%s", device,
		 *users ? users : "by somebody who cannot be found",
		 page_is_swap(device) ? "; add --swap to end that" : "");
	return err;
}

int page_detach(int argc, char **argv)
{
	char device[PAGE_VALUE_MAX] = "";
	int rc = cli_parse(&page_detach_command, argc, argv);

	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	rc = page_find(&page_detach_command, page_wanted.name);
	if (rc)
		return rc;
	rc = page_read(page_wanted.name, "device", device, sizeof(device));
	if (!rc && page_wanted.swap && page_swap_off(&page_detach_command, device))
		return CLI_EXIT_FAILED;
	if (!rc) {
		rc = detach_device(device);
		if (rc == -EBUSY)
			return CLI_EXIT_FAILED;
	}
	if (!rc || rc == -ENXIO) /* it was not attached */
		rc = page_remove(page_wanted.name);
	if (!rc)
		return CLI_EXIT_OK;
	cli_fail(&page_detach_command, "cannot detach %s: %s", page_wanted.name,
		 strerror(-rc));
	return CLI_EXIT_FAILED;
}
