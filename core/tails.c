/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tails.c - see tails.h. */
#include "core/tails.h"

static void tail_prepare(struct rbx_slab *slab, struct rbx_piece *piece, uint32_t slot)
{
	struct rbx_replica *replica = rbx_slab_replica(slab, slot);
	struct rbx_part *part = rbx_tail_part(piece, slot);

	rbx_replica_take_off(replica);
	part->server = (uint16_t)rbx_replica_server(replica);
	part->fragment = (struct rbx_fragment){
		.direction = RBX_DIRECTION_WRITE,
		.flags = piece->fragment_flags & RBX_FRAGMENT_URGENT,
		.rkey = replica->rkey,
		.remote_addr = rbx_replica_addr(replica) +
			       rbx_tail_offset(rbx_slab_shape(slab), rbx_piece_page(piece)),
		.local_addr = part->fragment.local_addr,
		.length_bytes = rbx_piece_pages_count(piece) * RBX_WIRE_CHECKSUM_BYTES,
		.done = part->fragment.done,
	};
}

void rbx_tails_prepare(struct rbx_slab *slab, struct rbx_piece *piece)
{
	uint32_t left = piece->send_mask;

	RBX_ASSERT(piece->state == RBX_PIECE_WRITING && piece->pages_max);
	piece->flight_mask |= (uint8_t)(left * RBX_PART_OF_TAIL);
	for (; left; left &= left - 1)
		tail_prepare(slab, piece, (uint32_t)__builtin_ctz(left));
}
