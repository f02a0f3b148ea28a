/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * strayed.h - a write that has failed, for tests that look into servers as well: their slabs have
 * the same name as those of a volume.
 */
#ifndef RBX_TESTS_LIB_VOLUME_STRAYED_H
#define RBX_TESTS_LIB_VOLUME_STRAYED_H

#include <stdint.h>

struct rbx_volume;

/* As if a write of this page had failed here: nothing says what servers have of it. */
void strayed_write(struct rbx_volume *volume, uint64_t offset);

#endif
