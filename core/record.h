/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * record.h - the membership of a volume in its record, as that travels (wire/record.h).
 */
#ifndef RBX_RECORD_H
#define RBX_RECORD_H

#include "core/membership.h"
#include "wire/record.h"

RBX_STATIC_ASSERT(RBX_MEMBERS_MAX == RBX_WIRE_MEMBERS_MAX, "a record has room for them");

/* The record was decoded, so it makes sense as far as bytes can tell. */
void rbx_record_get_membership(const struct rbx_wire_record *record,
			       struct rbx_membership *membership);
void rbx_record_put_membership(struct rbx_wire_record *record,
			       const struct rbx_membership *membership);

#endif
