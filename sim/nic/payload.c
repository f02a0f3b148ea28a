/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* payload.c - see payload.h. */
#include "sim/nic/payload.h"

#include <stdlib.h>

#define CLASS_BYTES_MIN 64u
#define CLASSES 26u /* up to 2 GiB */

static struct rbx_nic_payload *free_list[CLASSES];

struct rbx_nic_payload *rbx_nic_payload_get(uint32_t length_bytes)
{
	struct rbx_nic_payload *payload;
	uint32_t class = 0;

	if (length_bytes == 0)
		return NULL;
	while ((uint64_t)CLASS_BYTES_MIN << class < length_bytes)
		class++;
	RBX_ASSERT(class < CLASSES);
	payload = free_list[class];
	if (payload) {
		free_list[class] = payload->next;
		return payload;
	}
	payload = malloc(sizeof(*payload) +
			 ((size_t)CLASS_BYTES_MIN << class));
	if (!payload)
		abort();
	payload->class = class;
	return payload;
}

void rbx_nic_payload_put(struct rbx_nic_payload *payload)
{
	if (!payload)
		return;
	payload->next = free_list[payload->class];
	free_list[payload->class] = payload;
}

void rbx_nic_payload_gather(struct rbx_nic_payload *payload,
			    const struct rbx_sge *sges, uint32_t sge_count)
{
	uint8_t *to = payload ? payload->bytes : NULL;

	for (uint32_t i = 0; i < sge_count; i++) {
		if (sges[i].length_bytes == 0)
			continue;
		memcpy(to, (const void *)(uintptr_t)sges[i].addr,
		       sges[i].length_bytes);
		to += sges[i].length_bytes;
	}
}

void rbx_nic_payload_scatter(const struct rbx_nic_payload *payload,
			     uint32_t length_bytes, const struct rbx_sge *sges,
			     uint32_t sge_count)
{
	const uint8_t *from = payload ? payload->bytes : NULL;

	for (uint32_t i = 0; i < sge_count && length_bytes != 0; i++) {
		uint32_t bytes = RBX_MIN(length_bytes, sges[i].length_bytes);

		memcpy((void *)(uintptr_t)sges[i].addr, from, bytes);
		from += bytes;
		length_bytes -= bytes;
	}
}
