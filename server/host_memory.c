/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* host_memory.c - reads the memory of the machine from the kernel, see host_memory.h. */
#include "server/host_memory.h"

#include <stdio.h>
#include <string.h>

static void group_consider(struct rbx_host_memory *memory)
{
	struct rbx_memory_group group;

	if (!rbx_memory_group_read("/proc/self/cgroup", "/sys/fs/cgroup",
				   &group))
		return;
	if (group.available_bytes < memory->available_bytes)
		memory->available_bytes = group.available_bytes;
	if (group.limit_bytes >= memory->total_bytes)
		return;
	memory->total_bytes = group.limit_bytes;
	memcpy(memory->where, group.name, sizeof(memory->where));
}

bool rbx_host_memory_read(struct rbx_host_memory *memory)
{
	unsigned long long total_kib = 0, available_kib = 0;
	char line[128];
	FILE *file = fopen("/proc/meminfo", "re");

	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "MemTotal: %llu kB", &total_kib) == 1)
			continue;
		if (sscanf(line, "MemAvailable: %llu kB", &available_kib) == 1)
			break;
	}
	fclose(file);
	memory->total_bytes = total_kib << 10;
	memory->available_bytes = available_kib << 10;
	snprintf(memory->where, sizeof(memory->where), "this machine");
	group_consider(memory);
	return total_kib && available_kib;
}
