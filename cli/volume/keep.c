/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keep.c - how long a volume stays when no program has it open: "90s", "12h", "7d", "ever".
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/volume/volume.h"

#define KEEP_S_MAX (36500ull * 86400) /* a century */

static const struct {
	char letter;
	uint32_t seconds;
} units[] = { { 'd', 86400 }, { 'h', 3600 }, { 'm', 60 }, { 's', 1 } };

#define UNITS_COUNT (sizeof(units) / sizeof(units[0]))

/* The seconds of one unit of this letter; 0: there is none. */
static uint32_t unit_seconds(char letter)
{
	for (size_t i = 0; i < UNITS_COUNT; i++)
		if (units[i].letter == letter)
			return units[i].seconds;
	return 0;
}

int volume_set_keep(const struct cli_option *option, const char *text, char *reason,
		    size_t reason_bytes)
{
	size_t digits = strspn(text, "0123456789");
	uint32_t seconds = unit_seconds(text[digits]);
	uint64_t count = strtoull(text, NULL, 10); /* too large: ULLONG_MAX */

	if (!strcmp(text, "ever")) {
		*(uint64_t *)option->field = UINT64_MAX;
		return 0;
	}
	if (digits && seconds && !text[digits + 1] && count && count <= KEEP_S_MAX / seconds) {
		*(uint64_t *)option->field = count * seconds;
		return 0;
	}
	snprintf(reason, reason_bytes, "give ever, or a time from 1s to 36500d, with s, m, h or d");
	return -EINVAL;
}

const char *volume_keep_print(uint64_t keep_s, char *text, size_t text_bytes)
{
	size_t i = 0;

	if (keep_s == UINT64_MAX) {
		snprintf(text, text_bytes, "ever");
		return text;
	}
	while (i < UNITS_COUNT - 1 && (!keep_s || keep_s % units[i].seconds))
		i++;
	snprintf(text, text_bytes, "%" PRIu64 "%c", keep_s / units[i].seconds, units[i].letter);
	return text;
}
