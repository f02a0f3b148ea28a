/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * span.h - when a message passes a point: its first packet, and its last byte.
 *
 * The first packet of a message goes on before the message is complete, so each stage takes
 * and returns both times. The stages calculate in picoseconds: 4 KiB on a 100 Gbit/s wire are
 * 327,680 of them, and rounding each packet in each stage would add up. The queue of events
 * counts nanoseconds.
 */
#ifndef RBX_SIM_NIC_SPAN_H
#define RBX_SIM_NIC_SPAN_H

#include "core/port.h"

#define RBX_NIC_NS_PS 1000u

struct rbx_nic_span {
	uint64_t head_ps; /* its first packet is there */
	uint64_t tail_ps; /* and its last */
};

static inline uint64_t rbx_nic_ps(uint64_t time_ns)
{
	return time_ns * RBX_NIC_NS_PS;
}

/* The event after so many picoseconds: never earlier. */
static inline uint64_t rbx_nic_ns(uint64_t time_ps)
{
	return (time_ps + RBX_NIC_NS_PS - 1) / RBX_NIC_NS_PS;
}

static inline struct rbx_nic_span rbx_nic_span_at(uint64_t time_ps)
{
	return (struct rbx_nic_span){ time_ps, time_ps };
}

static inline struct rbx_nic_span rbx_nic_span_later(struct rbx_nic_span span,
						     uint64_t delay_ns)
{
	span.head_ps += rbx_nic_ps(delay_ns);
	span.tail_ps += rbx_nic_ps(delay_ns);
	return span;
}

#endif
