/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * notice.c - empty hooks: user space has no log of its peers and slabs (client/notice.h).
 * A program learns of its servers from errors and from the events of a volume.
 */
#include "client/notice.h"

void rbx_notice_phase(const struct rbx_peer *peer, enum rbx_peer_phase phase,
		      const char *reason)
{
	(void)peer;
	(void)phase;
	(void)reason;
}

void rbx_notice_eviction(const struct rbx_peer *peer,
			 const struct rbx_eviction *eviction)
{
	(void)peer;
	(void)eviction;
}

void rbx_notice_task(const struct rbx_slab *slab, enum rbx_slab_task task)
{
	(void)slab;
	(void)task;
}
