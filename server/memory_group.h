/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory_group.h - how much memory the control groups of this process leave it.
 *
 * A machine may have much and a process in a group little: whoever takes more than
 * its group has is killed, and no number of the machine warns it.
 */
#ifndef RBX_SERVER_MEMORY_GROUP_H
#define RBX_SERVER_MEMORY_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#define RBX_MEMORY_GROUP_NAME_MAX 512u

struct rbx_memory_group {
	uint64_t limit_bytes; /* the least of all groups that it is in */
	uint64_t available_bytes; /* the same, of what is left */
	char name[RBX_MEMORY_GROUP_NAME_MAX]; /* folder of the one with that limit */
};

/*
 * By the file that names a process's groups (/proc/self/cgroup) and the folder that
 * has them (/sys/fs/cgroup), of version 2 or 1. False: there is no limit.
 */
bool rbx_memory_group_read(const char *groups_file, const char *root,
			   struct rbx_memory_group *group);

#endif
