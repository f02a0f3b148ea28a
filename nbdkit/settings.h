/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * settings.h - the settings of the volume, from the command line of nbdkit.
 */
#ifndef RDMABOX_NBDKIT_SETTINGS_H
#define RDMABOX_NBDKIT_SETTINGS_H

#include <stdint.h>

#include <rdmabox/rdmabox.h>

struct settings {
	char *servers;
	uint64_t size_bytes; /* 0: that of the named volume */
	char *name; /* of a volume that there is; NULL: a new one */
	struct rbx_options options;
	struct rbx_volume_options volume;
};

/* There is one volume for each nbdkit. */
extern struct settings settings;

/* What --help of nbdkit prints. */
extern const char settings_help[];

/** settings_init() - the defaults. */
void settings_init(void);

/** settings_set() - one key=value. Returns 0, or -1 having told nbdkit why. */
int settings_set(const char *key, const char *value);

/** settings_check() - that what must be given is given. Returns as settings_set(). */
int settings_check(void);

/** settings_free() - what settings_set() has allocated. */
void settings_free(void);

#endif
