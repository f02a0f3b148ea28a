/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * record.c - see record.h.
 */
#include "core/record.h"

void rbx_record_get_membership(const struct rbx_wire_record *record,
			       struct rbx_membership *membership)
{
	uint32_t i;

	RBX_ASSERT(record->members_count <= RBX_MEMBERS_MAX);
	*membership = (struct rbx_membership){
		.epoch = record->epoch,
		.version = record->version,
		.count = record->members_count,
	};
	for (i = 0; i < record->members_count; i++)
		membership->members[i] = (struct rbx_member){
			.incarnation = record->incarnations[i],
			.state = record->member_flags[i] & RBX_WIRE_MEMBER_OUT ?
					 RBX_MEMBER_OUT :
					 RBX_MEMBER_IN,
			.was_in = record->member_flags[i] & RBX_WIRE_MEMBER_WAS_IN,
		};
}

void rbx_record_put_membership(struct rbx_wire_record *record,
			       const struct rbx_membership *membership)
{
	uint32_t i;

	record->epoch = membership->epoch;
	record->version = membership->version;
	record->members_count = membership->count;
	rbx_port_fill(record->incarnations, 0, sizeof(record->incarnations));
	rbx_port_fill(record->member_flags, 0, sizeof(record->member_flags));
	for (i = 0; i < membership->count; i++) {
		const struct rbx_member *member = &membership->members[i];

		record->incarnations[i] = member->incarnation;
		record->member_flags[i] =
			(uint8_t)((member->state == RBX_MEMBER_OUT ? RBX_WIRE_MEMBER_OUT : 0) |
				  (member->was_in ? RBX_WIRE_MEMBER_WAS_IN : 0));
	}
}
