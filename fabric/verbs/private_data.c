/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * private_data.c - exact bytes through messages that pad theirs.
 *
 * The connection manager of InfiniBand has room of a fixed size in each of its
 * messages (a request of rdma_cm 56 bytes, a reply 196, a rejection 148) and
 * delivers all of it, so the receiver cannot tell how much was sent. The frame:
 *
 *   0        length of the data in bytes, at most RBX_PRIVATE_DATA_MAX
 *   1 ..     the data; what follows is padding and is not looked at
 */
#include "fabric/verbs/private_data.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static_assert(RBX_VERBS_FRAME_MAX <= 56, "a request of rdma_cm takes 56 bytes");

uint8_t rbx_verbs_private_data_frame(uint8_t frame[RBX_VERBS_FRAME_MAX],
				     const void *data, size_t data_bytes)
{
	assert(data_bytes <= RBX_PRIVATE_DATA_MAX);
	frame[0] = (uint8_t)data_bytes;
	if (data_bytes)
		memcpy(frame + 1, data, data_bytes);
	return (uint8_t)(1 + data_bytes);
}

int rbx_verbs_private_data_unframe(const void *frame, size_t frame_bytes,
				   uint8_t data[RBX_PRIVATE_DATA_MAX])
{
	const uint8_t *bytes = frame;

	if (!bytes || !frame_bytes)
		return 0;
	if (bytes[0] > RBX_PRIVATE_DATA_MAX || bytes[0] > frame_bytes - 1)
		return -EPROTO;
	memcpy(data, bytes + 1, bytes[0]);
	return bytes[0];
}
