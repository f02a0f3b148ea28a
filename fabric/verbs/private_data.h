/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* private_data.h - exact bytes through messages that pad theirs. */
#ifndef RBX_VERBS_PRIVATE_DATA_H
#define RBX_VERBS_PRIVATE_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "fabric/fabric.h"

#define RBX_VERBS_FRAME_MAX (1 + RBX_PRIVATE_DATA_MAX)

/* Returns the length of the frame in bytes. */
uint8_t rbx_verbs_private_data_frame(uint8_t frame[RBX_VERBS_FRAME_MAX],
				     const void *data, size_t data_bytes);

/*
 * Takes the data out of what a peer sent, which may be anything. Returns its
 * length in bytes, 0 for an empty or missing one, -EPROTO if it is no frame.
 */
int rbx_verbs_private_data_unframe(const void *frame, size_t frame_bytes,
				   uint8_t data[RBX_PRIVATE_DATA_MAX]);

#endif
