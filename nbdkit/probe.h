/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * probe.h - tries the servers while the user still sees errors.
 */
#ifndef RDMABOX_NBDKIT_PROBE_H
#define RDMABOX_NBDKIT_PROBE_H

/** probe_servers() - tries the settings, and leaves nothing open. Returns 0, or -1 having told
 * nbdkit why. Blocks. */
int probe_servers(void);

#endif
