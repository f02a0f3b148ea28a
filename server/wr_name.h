/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wr_name.h - the id of a work request: it names the object of a completion.
 *
 * It has an index into a table and the generation of the entry. So a late completion of
 * an object that has ended since is recognised and dropped.
 */
#ifndef RBX_SERVER_WR_NAME_H
#define RBX_SERVER_WR_NAME_H

#include "server/bounds.h"

enum rbx_wr_kind {
	RBX_WR_CONTROL_RECV = 1,
	RBX_WR_CONTROL_SEND,
	RBX_WR_DATA_RECV,
};

struct rbx_wr_name {
	uint8_t kind; /* enum rbx_wr_kind */
	uint8_t slot; /* buffer of a control connection */
	uint32_t index; /* in connections or data_qps, less than 2^20 */
	uint32_t generation;
};
RBX_STATIC_ASSERT(RBX_CONNECTIONS_OF(RBX_CLIENTS_MAX) < 1u << 20 &&
			  RBX_CLIENTS_MAX * RBX_QUEUE_PAIRS_MAX < 1u << 20,
		  "an index has 20 bits");

static inline uint64_t rbx_wr_name_pack(struct rbx_wr_name name)
{
	return (uint64_t)name.kind << 60 | (uint64_t)name.slot << 52 |
	       (uint64_t)name.index << 32 | name.generation;
}

static inline struct rbx_wr_name rbx_wr_name_unpack(uint64_t wr_id)
{
	return (struct rbx_wr_name){
		.kind = (uint8_t)(wr_id >> 60),
		.slot = (uint8_t)(wr_id >> 52),
		.index = (uint32_t)(wr_id >> 32) & 0xfffff,
		.generation = (uint32_t)wr_id,
	};
}

#endif
