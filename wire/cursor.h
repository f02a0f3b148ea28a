/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cursor.h - walks over the bytes of a message, field by field.
 *
 * One function walks in both directions: the same list of fields encodes and decodes, so the
 * two cannot drift apart. Numbers are little-endian. Nothing is read or written beyond the
 * end: a field that does not fit makes the cursor bad, and so does a reserved byte that is
 * not zero.
 */
#ifndef RBX_WIRE_CURSOR_H
#define RBX_WIRE_CURSOR_H

#include "core/port.h"

struct rbx_cursor {
	uint8_t *to; /* encoding, else NULL */
	const uint8_t *from; /* decoding, else NULL */
	size_t at_bytes;
	size_t end_bytes;
	bool bad;
};

static inline bool rbx_cursor_fits(struct rbx_cursor *c, size_t n)
{
	if (c->end_bytes - c->at_bytes < n)
		c->bad = true;
	return !c->bad;
}

static inline void rbx_cursor_bytes(struct rbx_cursor *c, uint8_t *field,
				    size_t n)
{
	if (!rbx_cursor_fits(c, n))
		return;
	if (c->to)
		rbx_port_copy(c->to + c->at_bytes, field, n);
	else if (c->from)
		rbx_port_copy(field, c->from + c->at_bytes, n);
	c->at_bytes += n;
}

/* Numbers of n bytes, least significant first. */
static inline void rbx_cursor_number(struct rbx_cursor *c, uint64_t *field,
				     size_t n)
{
	uint8_t bytes[8] = { 0 };
	size_t i;

	for (i = 0; i < n; i++)
		bytes[i] = (uint8_t)(*field >> (8 * i));
	rbx_cursor_bytes(c, bytes, n);
	if (c->to || c->bad)
		return;
	*field = 0;
	for (i = 0; i < n; i++)
		*field |= (uint64_t)bytes[i] << (8 * i);
}

static inline void rbx_cursor_u64(struct rbx_cursor *c, uint64_t *field)
{
	rbx_cursor_number(c, field, 8);
}

static inline void rbx_cursor_u32(struct rbx_cursor *c, uint32_t *field)
{
	uint64_t number = *field;

	rbx_cursor_number(c, &number, 4);
	*field = (uint32_t)number;
}

static inline void rbx_cursor_u16(struct rbx_cursor *c, uint16_t *field)
{
	uint64_t number = *field;

	rbx_cursor_number(c, &number, 2);
	*field = (uint16_t)number;
}

/* n reserved bytes. */
static inline void rbx_cursor_zeros(struct rbx_cursor *c, size_t n)
{
	uint8_t zero = 0;

	while (n-- && !c->bad) {
		rbx_cursor_bytes(c, &zero, 1);
		if (zero)
			c->bad = true;
	}
}

/* A number that must have one known value. */
static inline void rbx_cursor_constant(struct rbx_cursor *c, uint64_t value,
				       size_t n)
{
	uint64_t number = value;

	rbx_cursor_number(c, &number, n);
	if (number != value)
		c->bad = true;
}

#endif
