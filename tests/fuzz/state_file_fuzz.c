/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * state_file_fuzz.c - the state of a server in its memory file: bytes as they are, and entries
 * with a good checksum. What is accepted is written as it was read.
 */
#include <stdlib.h>
#include <string.h>

#include "server/state_file.h"

/* A copy of an entry begins with its checksum (state_file.c). */
static void sum_mend(uint8_t *state, uint64_t at_bytes, size_t copy_bytes)
{
	uint32_t sum = rbx_port_crc32c(rbx_port_crc32c(0, &at_bytes, sizeof(at_bytes)),
				       state + at_bytes + 4, copy_bytes - 4);

	memcpy(state + at_bytes, &sum, sizeof(sum));
}

static void look(uint8_t *state)
{
	struct rbx_state_volume volume, again;
	struct rbx_state_slab slab;
	struct rbx_state_head head;

	if (!rbx_state_head_get(state, &head)) {
		(void)rbx_state_check(state, &head);
		rbx_state_head_put(state, &head);
		if (rbx_state_head_get(state, &head))
			abort();
	}
	if (!rbx_state_slab_get(state, 0, &slab)) {
		rbx_state_slab_put(state, 0, &slab);
		if (rbx_state_slab_get(state, 0, &slab))
			abort();
	}
	if (rbx_state_volume_get(state, 0, &volume))
		return;
	rbx_state_volume_put(state, 1, &volume);
	if (rbx_state_volume_get(state, 1, &again) ||
	    memcmp(&volume.record, &again.record, sizeof(volume.record)))
		abort();
	rbx_state_volume_put(state, 1, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
	static const struct { size_t at_bytes, copy_bytes; } entries[] = {
		{ RBX_STATE_HEAD_AT, RBX_STATE_HEAD_BYTES },
		{ RBX_STATE_VOLUMES_AT, RBX_STATE_VOLUME_BYTES },
		{ RBX_STATE_SLABS_AT, RBX_STATE_SLAB_BYTES },
	};
	const struct rbx_state_head head = {
		.incarnation = 1, .slab_bytes = 1 << 16, .slabs_count = 2,
		.memory_at_bytes = RBX_STATE_BYTES, .epoch_limit = 1,
	};
	static uint8_t *state;
	size_t which, first, length;

	if (!state)
		state = calloc(1, RBX_STATE_BYTES);
	if (!state || !length_bytes)
		return 0;
	memset(state, 0, RBX_STATE_VOLUMES_AT);
	rbx_state_format(state, &head);
	which = bytes[0] % (2 * (sizeof(entries) / sizeof(entries[0])));
	first = entries[which / 2].at_bytes;
	length = RBX_MIN(length_bytes - 1, 2 * entries[which / 2].copy_bytes);
	memset(state + first, 0, 2 * entries[which / 2].copy_bytes);
	memcpy(state + first, bytes + 1, length);
	if (which % 2)
		sum_mend(state, first, entries[which / 2].copy_bytes);
	look(state);
	memset(state + first, 0, 2 * entries[which / 2].copy_bytes);
	return 0;
}
