/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox page attach and detach: a block device in other machines' memory, and
 * swap on it.
 *
 * Attaching makes a directory in configfs, fills in what the options say and has
 * the kernel attach it; whatever fails on the way, all of it is undone. Why the
 * kernel refused stands in its log in words; here is what its errno means.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/page/page.h"

static struct {
	char name[PAGE_NAME_MAX];
	char servers[PAGE_VALUE_MAX];
	char mode[16];
	char checksums[8];
	char secret_file[PATH_MAX];
	char backup[PATH_MAX];
	uint64_t size_bytes;
	uint64_t backup_buffer_bytes;
	uint32_t replicas;
	uint32_t queue_pairs;
	uint32_t queue_depth;
	uint32_t peer_timeout_ms;
	uint32_t insecure;
	uint32_t reserve;
	uint32_t swap;
	uint32_t priority;
} wanted = {
	.name = "page",
	.mode = "hybrid",
	.checksums = "on",
	.replicas = 1,
	.queue_pairs = 1,
	.queue_depth = 128,
	.peer_timeout_ms = 5000,
	.backup_buffer_bytes = 16 << 20,
	.priority = PAGE_SWAP_PRIORITY_MAX,
};

static const struct cli_option attach_options[] = {
	{ "name", "N", "of the volume (default: page)", cli_set_text,
	  wanted.name, .max = sizeof(wanted.name) },
	{ "servers", "IP:PORT[,...]", "memory servers, by numbers",
	  cli_set_text, wanted.servers, .max = sizeof(wanted.servers) },
	{ "size", "SIZE", "of the device, in whole pages", cli_set_size,
	  &wanted.size_bytes, .min = 4096, .max = 1ull << 46 },
	{ "replicas", "N", "copies of each page (default: 1)", cli_set_number,
	  &wanted.replicas, .min = 1, .max = 3 },
	{ "qps", "N", "queue pairs for each server (default: 1)",
	  cli_set_number, &wanted.queue_pairs, .min = 1, .max = 16 },
	{ "queue-depth", "N", "reads outstanding, and writes (default: 128)",
	  cli_set_number, &wanted.queue_depth, .min = 1, .max = 1024 },
	{ "mode", "single|doorbell|merge|hybrid",
	  "how requests are batched (default: hybrid)", cli_set_word,
	  wanted.mode, .max = sizeof(wanted.mode),
	  .words = "single|doorbell|merge|hybrid" },
	{ "checksums", "on|off", "CRC32C of each 4 KiB page, kept here\n"
				 "(default: on)",
	  cli_set_word, wanted.checksums, .max = sizeof(wanted.checksums),
	  .words = "on|off" },
	{ "peer-timeout", "MS", "until a silent server is given up\n"
				"(default: 5000)",
	  cli_set_number, &wanted.peer_timeout_ms, .min = 400, .max = 600000 },
	{ "secret-file", "F", "the secret shared with the servers",
	  cli_set_text, wanted.secret_file, .max = sizeof(wanted.secret_file) },
	{ "insecure", NULL, "no secret, even beyond loopback", cli_set_flag,
	  .field = &wanted.insecure },
	{ "reserve", NULL, "borrow all of its memory now, not what is written\n"
			   "when it is written",
	  cli_set_flag, .field = &wanted.reserve },
	{ "backup", "DEVICE", "a disk behind it, for the case that all servers\n"
			      "of a page are lost",
	  cli_set_text, wanted.backup, .max = sizeof(wanted.backup) },
	{ "backup-buffer", "SIZE", "memory for what the disk has yet to be\n"
				   "written (default: 16M)",
	  cli_set_size, &wanted.backup_buffer_bytes, .min = 128 << 10,
	  .max = 1 << 30 },
	{ "swap", NULL, "make the device swap, and use it (with --reserve)", cli_set_flag,
	  .field = &wanted.swap },
	{ "priority", "N", "of the swap (default: the highest, 32767)",
	  cli_set_number, &wanted.priority, .min = 0,
	  .max = PAGE_SWAP_PRIORITY_MAX },
};

static const struct cli_command attach_command = {
	.name = "page attach",
	.purpose = "Attaches other machines' memory as a block device.",
	.usage = "--servers IP:PORT[,IP:PORT...] --size SIZE\n"
		 "                    [--secret-file F | --insecure] [--swap] [--backup DEVICE]\n"
		 "                    [OPTION...]",
	.options = attach_options,
	.options_count = sizeof(attach_options) / sizeof(attach_options[0]),
};

static const struct cli_option detach_options[] = {
	{ "name", "N", "of the volume (default: page)", cli_set_text,
	  wanted.name, .max = sizeof(wanted.name) },
	{ "swap", NULL, "first read back what is swapped out to it",
	  cli_set_flag, .field = &wanted.swap },
};

static const struct cli_command detach_command = {
	.name = "page detach",
	.purpose = "Detaches a device, and gives its memory back. What is on it is lost.",
	.usage = "[--name N] [--swap]",
	.options = detach_options,
	.options_count = sizeof(detach_options) / sizeof(detach_options[0]),
};

/* ---- Options to files -----------------------------------------------------------*/

static int number_write(const char *file, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	return page_write(wanted.name, file, text, strlen(text));
}

/* A secret that others can read is none. */
static int secret_write(void)
{
	char secret[PAGE_VALUE_MAX];
	struct stat status;
	ssize_t count = -1;
	int fd = open(wanted.secret_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int err;

	if (fd < 0 || fstat(fd, &status)) {
		err = -errno;
		cli_fail(&attach_command, "cannot open secret file %s: %s",
			 wanted.secret_file, strerror(errno));
		goto out_close;
	}
	if (status.st_mode & S_IRWXO) {
		cli_fail(&attach_command, "secret file %s is open to everybody; close it with: chmod o-rwx %s",
			 wanted.secret_file, wanted.secret_file);
		err = -EACCES;
		goto out_close;
	}
	count = read(fd, secret, sizeof(secret));
	err = count < 0 ? -errno : 0;
	if (count == (ssize_t)sizeof(secret))
		err = -EFBIG;
	if (!err)
		err = page_write(wanted.name, "secret", secret, (size_t)count);
	if (err)
		cli_fail(&attach_command, "cannot use secret file %s: %s",
			 wanted.secret_file, strerror(-err));
	explicit_bzero(secret, sizeof(secret));
out_close:
	if (fd >= 0)
		close(fd);
	return err;
}

static int options_write(void)
{
	int err = page_write(wanted.name, "servers", wanted.servers,
			     strlen(wanted.servers));

	if (!err)
		err = page_write(wanted.name, "mode", wanted.mode,
				 strlen(wanted.mode));
	if (!err)
		err = number_write("size", wanted.size_bytes);
	if (!err)
		err = number_write("replicas", wanted.replicas);
	if (!err)
		err = number_write("queue_pairs", wanted.queue_pairs);
	if (!err)
		err = number_write("queue_depth", wanted.queue_depth);
	if (!err)
		err = number_write("peer_timeout_ms", wanted.peer_timeout_ms);
	if (!err)
		err = number_write("insecure", wanted.insecure);
	if (!err)
		err = number_write("on_demand",
				   !wanted.reserve && !wanted.swap);
	if (!err)
		err = page_write(wanted.name, "checksums", wanted.checksums,
				 strlen(wanted.checksums));
	if (!err)
		err = number_write("backup_buffer", wanted.backup_buffer_bytes);
	if (!err && *wanted.backup)
		err = page_write(wanted.name, "backup", wanted.backup,
				 strlen(wanted.backup));
	if (err)
		cli_fail(&attach_command, "cannot set up the volume: %s",
			 strerror(-err));
	else if (*wanted.secret_file)
		err = secret_write();
	return err;
}

/* udev has a look at a device that is new, or that somebody wrote to and closed:
 * such as one whose swap has just ended. It does not take long; but what nobody is to
 * have is not left there because the machine was slow. */
#define DETACH_TRIES 10
#define UNDO_TRIES 100
#define DETACH_PAUSE_US 100000

static int detach(int tries)
{
	int err = page_write(wanted.name, "attached", "0", 1);

	for (int i = 1; err == -EBUSY && i < tries; i++) {
		usleep(DETACH_PAUSE_US);
		err = page_write(wanted.name, "attached", "0", 1);
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
		return "all servers must be reached through one RDMA device";
	case -EACCES:
		return "a server refuses the secret, or wants one; give its --secret-file";
	case -EPERM:
		return "a server is another machine; give a --secret-file, or say --insecure";
	case -ENOSPC:
	case -EDQUOT:
		return "the servers do not lend that much; ask for less, or name more servers";
	case -EEXIST:
		return "a server is named twice, or has two of the addresses";
	case -EOPNOTSUPP:
		return "a server is reached through an iWARP device, which is not supported";
	case -EMEDIUMTYPE:
		return "the servers lend slabs of different sizes; start them with the same --slab";
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
	case -EINVAL:
		return "the kernel does not take these options; its log (dmesg) says which";
	default:
		return strerror(-err);
	}
}

static int attach_device(char *device, size_t device_bytes)
{
	int err = page_write(wanted.name, "attached", "1", 1);

	if (!err)
		err = page_read(wanted.name, "device", device, device_bytes);
	if (err)
		cli_fail(&attach_command, "%s", attach_sentence(err));
	return err;
}

static int check_options(void)
{
	if (!*wanted.servers)
		return cli_fail(&attach_command,
				"no servers; add --servers IP:PORT[,IP:PORT...]");
	if (!wanted.size_bytes)
		return cli_fail(&attach_command, "no size; add --size SIZE");
	if (wanted.size_bytes % 4096)
		return cli_fail(&attach_command,
				"--size is no multiple of 4096 bytes");
	if (*wanted.secret_file && wanted.insecure)
		return cli_fail(&attach_command,
				"--secret-file and --insecure exclude each other");
	if (strchr(wanted.name, '/') || *wanted.name == '.')
		return cli_fail(&attach_command,
				"'%s' is no name for a volume", wanted.name);
	return 0;
}

int page_attach(int argc, char **argv)
{
	char device[PAGE_VALUE_MAX];
	int rc = cli_parse(&attach_command, argc, argv);

	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	rc = check_options();
	if (rc)
		return rc;
	if (page_prepare(&attach_command))
		return CLI_EXIT_USAGE;
	rc = page_make(wanted.name);
	if (rc)
		return cli_fail(&attach_command, rc == -EEXIST ? "there is a volume %s already; give another --name" :
				"cannot make volume %s: %s",
				wanted.name, strerror(-rc));
	if (options_write() || attach_device(device, sizeof(device)))
		goto out_remove;
	if (wanted.swap && page_swap_on(&attach_command, device, wanted.priority))
		goto out_detach;
	printf("/dev/%s\n", device);
	return CLI_EXIT_OK;

out_detach:
	(void)detach(UNDO_TRIES);
out_remove:
	(void)page_remove(wanted.name);
	return CLI_EXIT_USAGE;
}

/* ---- Detach ---------------------------------------------------------------------*/

static int detach_device(const char *device)
{
	char users[512];
	int err = detach(DETACH_TRIES);

	if (err != -EBUSY)
		return err;
	page_users(device, users, sizeof(users));
	cli_fail(&detach_command, "/dev/%s is in use: %s%s", device,
		 *users ? users : "by somebody who cannot be found",
		 page_is_swap(device) ? "; add --swap to end that" : "");
	return err;
}

int page_detach(int argc, char **argv)
{
	char device[PAGE_VALUE_MAX] = "";
	int rc = cli_parse(&detach_command, argc, argv);

	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	if (page_prepare(&detach_command))
		return CLI_EXIT_USAGE;
	if (!page_exists(wanted.name))
		return cli_fail(&detach_command, "there is no volume %s; see rdmabox page list",
				wanted.name);
	rc = page_read(wanted.name, "device", device, sizeof(device));
	if (!rc && wanted.swap && page_swap_off(&detach_command, device))
		return CLI_EXIT_FAILED;
	if (!rc) {
		rc = detach_device(device);
		if (rc == -EBUSY)
			return CLI_EXIT_FAILED;
	}
	if (!rc || rc == -ENXIO) /* it was not attached */
		rc = page_remove(wanted.name);
	if (!rc)
		return CLI_EXIT_OK;
	cli_fail(&detach_command, "cannot detach %s: %s", wanted.name,
		 strerror(-rc));
	return CLI_EXIT_FAILED;
}
