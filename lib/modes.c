/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * modes.c - the texts of the option `mode`: the paper's four ways of batching.
 */
#include <string.h>

#include "core/modes.h"
#include "lib/options.h"

const struct rbx_mode *rbx_mode_find(const char *name)
{
#define MODE(name, merge, chain) { name, merge, chain },
	static const struct rbx_mode modes[] = { RBX_MODES(MODE) };
#undef MODE

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(modes[i].name, name) == 0)
			return &modes[i];
	}
	return NULL;
}
