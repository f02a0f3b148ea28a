/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* host_memory.c - see host_memory.h: by what the kernel says. */
#include "server/host_memory.h"

#include <stdio.h>

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
	return total_kib && available_kib;
}
