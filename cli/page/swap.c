/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Swap on a device of `rdmabox page`.
 *
 * The kernel fills swap with a higher priority first, and gives each new swap a lower
 * priority than all before. Memory of another machine should come before disks. So this
 * sets the highest priority, unless the user wants another one.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/page/page.h"

static int run_mkswap(const char *path)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		(void)!freopen("/dev/null", "w", stdout);
		execlp("mkswap", "mkswap", path, (char *)NULL);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		return -EIO;
	return 0;
}

int page_swap_on(const struct cli_command *command, const char *device,
		 uint32_t priority)
{
	int flags = SWAP_FLAG_DISCARD | SWAP_FLAG_PREFER |
		    (int)(priority << SWAP_FLAG_PRIO_SHIFT);
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/dev/%s", device);
	if (run_mkswap(path)) {
		cli_fail(command, "mkswap %s failed", path);
		return -EIO;
	}
	if (!swapon(path, flags))
		return 0;
	cli_fail(command, "cannot swap to %s: %s", path, strerror(errno));
	return -EIO;
}

int page_swap_off(const struct cli_command *command, const char *device)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/dev/%s", device);
	if (!page_is_swap(device) || !swapoff(path))
		return 0;
	cli_fail(command, "cannot read back what is swapped to %s: %s", path,
		 strerror(errno));
	return -EIO;
}
