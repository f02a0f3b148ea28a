/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * record.c - encodes, decodes and checks the records, labels and intent words of record.h.
 */
#include "wire/record.h"

void rbx_wire_walk_text(struct rbx_cursor *c, char *text, size_t size)
{
	rbx_cursor_bytes(c, (uint8_t *)text, size);
}

void rbx_wire_walk_record(struct rbx_cursor *c, struct rbx_wire_record *r)
{
	uint32_t i;

	rbx_wire_walk_text(c, r->name, sizeof(r->name));
	rbx_wire_walk_text(c, r->owner, sizeof(r->owner));
	rbx_cursor_u64(c, &r->volume_id);
	rbx_cursor_u64(c, &r->size_bytes);
	rbx_cursor_u64(c, &r->slab_bytes);
	rbx_cursor_u64(c, &r->keep_s);
	rbx_cursor_u64(c, &r->epoch);
	rbx_cursor_u64(c, &r->version);
	rbx_cursor_u32(c, &r->replicas);
	rbx_cursor_u32(c, &r->flags);
	rbx_cursor_u32(c, &r->members_count);
	rbx_cursor_u32(c, &r->copies);
	for (i = 0; i < RBX_WIRE_MEMBERS_MAX; i++)
		rbx_cursor_u64(c, &r->incarnations[i]);
	rbx_cursor_bytes(c, r->member_flags, sizeof(r->member_flags));
}

void rbx_wire_walk_labels(struct rbx_cursor *c, struct rbx_wire_labels *labels)
{
	uint32_t i;

	rbx_cursor_u64(c, &labels->next);
	rbx_cursor_u32(c, &labels->count);
	rbx_cursor_zeros(c, 4);
	for (i = 0; i < RBX_WIRE_LABELS_MAX; i++) {
		struct rbx_wire_label *label = &labels->labels[i];

		rbx_cursor_u64(c, &label->label);
		rbx_cursor_u64(c, &label->slab_id);
		rbx_cursor_u64(c, &label->epoch);
		rbx_cursor_u64(c, &label->remote_addr);
		rbx_cursor_u32(c, &label->rkey);
		rbx_cursor_u32(c, &label->is_complete);
		rbx_cursor_u64(c, &label->intent);
		rbx_cursor_u64(c, &label->behind);
	}
}

void rbx_wire_walk_intents(struct rbx_cursor *c, struct rbx_wire_intents *intents)
{
	uint32_t i;

	rbx_cursor_u32(c, &intents->count);
	rbx_cursor_zeros(c, 4);
	for (i = 0; i < RBX_WIRE_INTENTS_MAX; i++) {
		rbx_cursor_u64(c, &intents->intents[i].slab_id);
		rbx_cursor_u64(c, &intents->intents[i].epoch);
		rbx_cursor_u64(c, &intents->intents[i].word);
		rbx_cursor_u64(c, &intents->intents[i].behind);
	}
}

static bool is_printable(char c)
{
	return c >= ' ' && c <= '~';
}

void rbx_wire_text_clean(char *text)
{
	for (; *text; text++)
		if (!is_printable(*text))
			*text = '?';
}

bool rbx_wire_text_makes_sense(const char *text, size_t size)
{
	size_t i = 0;

	while (i < size && is_printable(text[i]))
		i++;
	if (i == size)
		return false; /* it has no end */
	while (i < size && !text[i])
		i++;
	return i == size;
}

static bool is_letter_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool rbx_wire_volume_name_makes_sense(const char name[RBX_WIRE_VOLUME_NAME_BYTES])
{
	size_t i;

	if (!rbx_wire_text_makes_sense(name, RBX_WIRE_VOLUME_NAME_BYTES) ||
	    !is_letter_or_digit(name[0]))
		return false;
	for (i = 0; name[i]; i++)
		if (!is_letter_or_digit(name[i]) && name[i] != '.' && name[i] != '_' &&
		    name[i] != '-')
			return false;
	return true;
}

static bool members_make_sense(const struct rbx_wire_record *r)
{
	uint32_t i, j;

	if (r->members_count > RBX_WIRE_MEMBERS_MAX)
		return false;
	for (i = 0; i < r->members_count; i++) {
		if (!r->incarnations[i] ||
		    r->member_flags[i] & ~(RBX_WIRE_MEMBER_OUT | RBX_WIRE_MEMBER_WAS_IN))
			return false;
		for (j = 0; j < i; j++)
			if (r->incarnations[i] == r->incarnations[j])
				return false;
	}
	for (; i < RBX_WIRE_MEMBERS_MAX; i++)
		if (r->incarnations[i] || r->member_flags[i])
			return false;
	return true;
}

bool rbx_wire_record_makes_sense(const struct rbx_wire_record *r)
{
	return rbx_wire_volume_name_makes_sense(r->name) &&
	       rbx_credential_makes_sense(r->owner) && r->volume_id &&
	       !(r->flags & ~(RBX_WIRE_CHECKSUMS | RBX_WIRE_EVEN | RBX_WIRE_RESERVED |
			      RBX_WIRE_LOST | RBX_WIRE_UNSURE | RBX_WIRE_REMOVED)) &&
	       members_make_sense(r) &&
	       r->copies <= r->replicas &&
	       !r->epoch == !r->version && !r->epoch == !r->members_count;
}

RBX_STATIC_ASSERT(sizeof(struct rbx_wire_record) ==
			  RBX_WIRE_VOLUME_NAME_BYTES + RBX_CREDENTIAL_BYTES + 6 * 8 + 4 * 4 +
				  9 * RBX_WIRE_MEMBERS_MAX,
		  "nothing is between the fields of a record, so its bytes can be compared");

bool rbx_record_is_equal(const struct rbx_wire_record *a, const struct rbx_wire_record *b)
{
	return rbx_port_equal(a, b, sizeof(*a));
}

static bool label_makes_sense(const struct rbx_wire_label *label)
{
	return label->label && label->slab_id && label->epoch && label->is_complete <= 1;
}

static bool label_is_zero(const struct rbx_wire_label *label)
{
	return !label->label && !label->slab_id && !label->epoch && !label->remote_addr &&
	       !label->rkey && !label->is_complete && !label->intent && !label->behind;
}

bool rbx_wire_labels_make_sense(const struct rbx_wire_labels *labels)
{
	uint32_t i;

	if (labels->count > RBX_WIRE_LABELS_MAX)
		return false;
	for (i = 0; i < RBX_WIRE_LABELS_MAX; i++)
		if (i < labels->count ? !label_makes_sense(&labels->labels[i]) :
					!label_is_zero(&labels->labels[i]))
			return false;
	return true;
}

bool rbx_wire_intents_make_sense(const struct rbx_wire_intents *intents)
{
	uint32_t i;

	if (!intents->count || intents->count > RBX_WIRE_INTENTS_MAX)
		return false;
	for (i = 0; i < RBX_WIRE_INTENTS_MAX; i++) {
		const struct rbx_wire_intent *intent = &intents->intents[i];

		if (i < intents->count ? !intent->slab_id || !intent->epoch :
					 intent->slab_id || intent->epoch || intent->word ||
						 intent->behind)
			return false;
	}
	return true;
}
