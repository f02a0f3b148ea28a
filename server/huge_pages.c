/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* huge_pages.c - see huge_pages.h. */
#include "server/huge_pages.h"

#include <stdio.h>

/* Some of the free pages may be reserved for a mapping that has not touched them yet. */
#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"

static uint64_t number_read(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned long long number = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%llu", &number) != 1)
		number = 0;
	fclose(file);
	return number;
}

uint64_t rbx_huge_pages_free(void)
{
	uint64_t free_count = number_read(POOL "free_hugepages");
	uint64_t promised_count = number_read(POOL "resv_hugepages");

	return free_count > promised_count ? free_count - promised_count : 0;
}
