/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* traffic.c - reports what peers have read and written (traffic.h). */
#include "traffic.h"

#include "device.h"

static uint64_t value_of(atomic_uint_fast64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

void soft_get_traffic(struct rbx_device *device, struct rbx_traffic *traffic)
{
	struct soft_traffic *counted = &soft_device_of(device)->traffic;

	*traffic = (struct rbx_traffic){
		.reads = value_of(&counted->reads),
		.read_bytes = value_of(&counted->read_bytes),
		.writes = value_of(&counted->writes),
		.written_bytes = value_of(&counted->written_bytes),
	};
}
