/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * traffic.h - counts what peers read and write here.
 *
 * Several threads may carry out requests of peers, each for other qps, so the counters are
 * atomic. They order nothing: relaxed. A reader may see a request counted before its bytes.
 */
#ifndef SOFT_TRAFFIC_H
#define SOFT_TRAFFIC_H

#include <stdatomic.h>
#include <stdint.h>

struct rbx_device;
struct rbx_traffic;

struct soft_traffic {
	atomic_uint_fast64_t reads;
	atomic_uint_fast64_t read_bytes;
	atomic_uint_fast64_t writes;
	atomic_uint_fast64_t written_bytes;
};

/* A READ was taken and will be answered. */
static inline void soft_traffic_add_read(struct soft_traffic *traffic,
					 uint32_t bytes)
{
	atomic_fetch_add_explicit(&traffic->reads, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&traffic->read_bytes, bytes,
				  memory_order_relaxed);
}

/* A WRITE is complete. */
static inline void soft_traffic_add_write(struct soft_traffic *traffic,
					  uint32_t bytes)
{
	atomic_fetch_add_explicit(&traffic->writes, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&traffic->written_bytes, bytes,
				  memory_order_relaxed);
}

/* As rbx_fabric_ops.get_traffic. */
void soft_get_traffic(struct rbx_device *device, struct rbx_traffic *traffic);

#endif
