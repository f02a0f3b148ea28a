/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory_group.h - how much memory the control groups of this process leave to it.
 *
 * A process in a control group may have far less memory than the machine. If it takes
 * more than its group allows it is killed, and the numbers of the machine do not show
 * this.
 */
#ifndef RBX_SERVER_MEMORY_GROUP_H
#define RBX_SERVER_MEMORY_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#define RBX_MEMORY_GROUP_NAME_MAX 512u

struct rbx_memory_group {
	uint64_t limit_bytes; /* the lowest limit of all groups that the process is in */
	uint64_t available_bytes; /* the least that one of the groups has left */
	char name[RBX_MEMORY_GROUP_NAME_MAX]; /* folder of the group with that limit */
};

/*
 * groups_file names the groups of a process (/proc/self/cgroup). root is the folder with
 * the groups (/sys/fs/cgroup), of version 2 or 1. False: there is no limit.
 */
bool rbx_memory_group_read(const char *groups_file, const char *root,
			   struct rbx_memory_group *group);

#endif
