/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * page.h - what the parts of `rdmabox page` share: a volume of rdmabox_block.ko as
 * its directory in configfs.
 *
 *	page.c    the commands list and status, and the choice of a command
 *	options.c the options of attach and detach
 *	attach.c  makes a device from options, and removes it
 *	kernel_log.c  says what the kernel does meanwhile
 *	pool.c    makes a list of servers of a pool
 *	servers.c gives a volume one more server
 *	set.c     changes options of a volume that is attached
 *	secret.c  hands over a secret
 *	swap.c    swap on a device
 *	volume.c  the files of a directory
 *	users.c   finds what keeps a device in use
 */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"

#define PAGE_NAME_MAX 64
#define PAGE_VALUE_MAX 4096 /* configfs gives and takes a page */

/* The directory of all volumes. */
extern const char page_volumes[];

/* options.c: 0, or the exit code once it has said that this is no name: one that leads
 * out of the directory of all volumes. */
int page_name_check(const struct cli_command *command, const char *name);

/* options.c: loads the module, and looks for a volume. 0, or the exit code once it has said that
 * there is none of this name, or what else is wrong. */
int page_find(const struct cli_command *command, const char *name);

/* volume.c: each 0 or -errno. */

/* Loads the module and mounts configfs; prints why it cannot. */
int page_prepare(const struct cli_command *command);
int page_make(const char *name);
int page_remove(const char *name);
/* Reads a file of a volume, without the newline at its end. */
int page_read(const char *name, const char *file, char *value,
	      size_t value_bytes);
int page_write(const char *name, const char *file, const char *value,
	       size_t value_bytes);
bool page_exists(const char *name);
/* The same for the device of an attached volume: counters of its requests. */
int page_read_device(const char *device, const char *file, char *value,
		     size_t value_bytes);
/* Calls back for each volume, in no order; returns the first result that is not 0. */
int page_each(int (*call)(const char *name, void *user), void *user);

/* users.c */

/* What has /dev/@device open, as text: "swap", "mounted on /mnt, process 7 (fio)"; "" if
 * nothing was found. */
void page_users(const char *device, char *text, size_t text_bytes);
bool page_is_swap(const char *device);

/* servers.c */
extern const struct cli_command page_add_server_command;

/* Why a server cannot be added. */
const char *page_server_sentence(int err);

/* set.c */
extern const struct cli_command page_set_command;

/* secret.c: writes the secret of a file to a volume. 0, or -errno after printing why. */
int page_secret_write(const struct cli_command *command, const char *volume, const char *file);

/* swap.c: each returns 0, or -errno after printing why. */

/* The highest priority of swapon(2); it is filled first. */
#define PAGE_SWAP_PRIORITY_MAX 32767

/* Makes /dev/@device swap, and uses it. */
int page_swap_on(const struct cli_command *command, const char *device,
		 uint32_t priority);
/* Reads back what is swapped out to the device, if it is swap. */
int page_swap_off(const struct cli_command *command, const char *device);

/* pool.c: a pool becomes the list of its members. Returns 0 or an exit code. */
int page_pool_resolve(const struct cli_command *command, char pool[PAGE_VALUE_MAX]);

/* kernel_log.c: in between, what the kernel says of a volume that is being opened is printed. */
void page_kernel_log_begin(void);
void page_kernel_log_end(void);

/* attach.c and its options.c */
extern const struct cli_command page_attach_command;
extern const struct cli_command page_detach_command;

struct page_wanted {
	char name[PAGE_NAME_MAX];
	char pool[PAGE_VALUE_MAX];
	char volume[64]; /* "": none that has a name */
	char mode[16];
	char checksums[8];
	char secret_file[PATH_MAX];
	char credential[32];
	char backup[PATH_MAX];
	uint64_t size_bytes;
	uint64_t backup_buffer_bytes;
	uint64_t copy_rate;
	uint64_t crash_copy;
	uint32_t replicas;
	uint32_t queue_pairs;
	uint32_t queue_depth;
	uint32_t peer_timeout_ms;
	uint32_t insecure;
	uint32_t reserve;
	uint32_t swap;
	uint32_t priority;
	uint32_t take_over;
};

extern struct page_wanted page_wanted;

/* Returns 0 or an exit code. */
int page_options_check(void);

int page_attach(int argc, char **argv);
int page_detach(int argc, char **argv);

#endif
