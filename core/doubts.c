/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * doubts.c - see doubts.h. The lock of the slab guards them. A look at all of them happens
 * only after a failure.
 *
 * A page may be in doubt more than once, with other data in other slots; no slot is in two
 * doubts of a page. The data of a slot that is in no doubt is what the page's checksum says.
 */
#include "core/doubts.h"

static void drop_at(struct rbx_doubts *doubts, uint32_t index)
{
	doubts->all[index] = doubts->all[--doubts->count];
}

/* Slots for which a page is in doubt. */
static uint8_t slots_of(const struct rbx_doubts *doubts, uint32_t page)
{
	uint8_t slots = 0;

	for (uint32_t i = 0; i < doubts->count; i++)
		if (doubts->all[i].page == page)
			slots |= doubts->all[i].slots;
	return slots;
}

/* The first doubt that is later, and has no slots if of_no_slot; or NULL. */
static struct rbx_doubt *find_later(struct rbx_doubts *doubts, bool of_no_slot)
{
	for (uint32_t i = 0; i < doubts->count; i++)
		if (doubts->all[i].is_later && !(of_no_slot && doubts->all[i].slots))
			return &doubts->all[i];
	return NULL;
}

bool rbx_doubts_are_later(struct rbx_doubts *doubts)
{
	return find_later(doubts, false) != NULL;
}

/* A doubt with the same data, or NULL. */
static struct rbx_doubt *find_same(struct rbx_doubts *doubts, struct rbx_doubt doubt)
{
	for (uint32_t i = 0; i < doubts->count; i++)
		if (doubts->all[i].page == doubt.page &&
		    doubts->all[i].checksum == doubt.checksum &&
		    doubts->all[i].is_later == doubt.is_later)
			return &doubts->all[i];
	return NULL;
}

/* The doubt to replace if there is no room. Acknowledged data has priority, then data that
 * some replica has over data that none is known to have. Or NULL. */
static struct rbx_doubt *find_lesser(struct rbx_doubts *doubts, struct rbx_doubt doubt)
{
	struct rbx_doubt *lesser = doubt.slots ? find_later(doubts, true) : NULL;

	if (!lesser && !doubt.is_later)
		lesser = find_later(doubts, false);
	return lesser;
}

static void add(struct rbx_doubts *doubts, struct rbx_doubt doubt)
{
	struct rbx_doubt *place;

	if (!doubt.slots && !doubt.is_later)
		return;
	place = find_same(doubts, doubt);
	if (place)
		doubt.slots |= place->slots;
	else if (doubts->count < RBX_DOUBTS_MAX)
		place = &doubts->all[doubts->count++];
	else
		place = find_lesser(doubts, doubt);
	if (place)
		*place = doubt;
}

static void add_former(struct rbx_doubts *doubts, uint32_t page, uint32_t checksum,
		       uint8_t slots)
{
	add(doubts, (struct rbx_doubt){ .page = page,
					.checksum = checksum,
					.slots = slots });
}

/* Whether a doubt is of one of these pages. */
static bool is_of(const struct rbx_doubt *doubt, uint32_t page, uint32_t pages_count)
{
	return doubt->page - page < pages_count;
}

/* These slots have what the checksums of these pages say. Doubts that no slot is left of are
 * dropped, except later ones if they are kept. */
static void resolve(struct rbx_doubts *doubts, uint32_t page, uint32_t pages_count,
		    uint8_t slots, bool keeps_later)
{
	uint32_t i = 0;

	while (i < doubts->count) {
		struct rbx_doubt *doubt = &doubts->all[i];

		if (is_of(doubt, page, pages_count))
			doubt->slots &= (uint8_t)~slots;
		if (doubt->slots || !is_of(doubt, page, pages_count) ||
		    (keeps_later && doubt->is_later))
			i++;
		else
			drop_at(doubts, i);
	}
}

void rbx_doubts_have(struct rbx_doubts *doubts, const uint32_t *of_pages,
		     uint32_t page, uint32_t pages_count, uint8_t slots)
{
	/* The data of an earlier attempt may be somewhere, too. */
	resolve(doubts, page, pages_count, slots, true);
	for (uint32_t i = 0; i < pages_count; i++)
		add(doubts, (struct rbx_doubt){ .page = page + i,
						.checksum = of_pages[i],
						.slots = slots,
						.is_later = true });
}

void rbx_doubts_missed(struct rbx_doubts *doubts, const uint32_t *checksums,
		       uint32_t page, uint32_t pages_count, uint8_t missed_slots)
{
	/* Slots that missed it may have data of a later one. */
	for (uint32_t end = page + pages_count; page < end; page++) {
		resolve(doubts, page, 1, (uint8_t)~missed_slots, missed_slots != 0);
		add_former(doubts, page, RBX_LOAD_RELAXED(&checksums[page]),
			   missed_slots & (uint8_t)~slots_of(doubts, page));
	}
}

void rbx_doubts_drop(struct rbx_doubts *doubts, uint32_t page, uint32_t pages_count)
{
	resolve(doubts, page, pages_count, (uint8_t)~0, false);
}

/* A doubt that no slot is known to have may still apply to the other slots. */
void rbx_doubts_forget(struct rbx_doubts *doubts, uint32_t slot)
{
	uint32_t i = 0;

	while (i < doubts->count) {
		struct rbx_doubt *doubt = &doubts->all[i];

		doubt->slots &= (uint8_t)~(1u << slot);
		if (doubt->slots || doubt->is_later)
			i++;
		else
			drop_at(doubts, i);
	}
}

/* ---- Copies -----------------------------------------------------------------*/

static void copied(struct rbx_doubts *doubts, uint32_t page, uint32_t pages_count,
		   bool is_copied)
{
	for (uint32_t i = 0; i < doubts->count; i++)
		if (is_of(&doubts->all[i], page, pages_count))
			doubts->all[i].is_copied = is_copied;
}

void rbx_doubts_copy_begin(struct rbx_doubts *doubts, uint32_t page,
			   uint32_t pages_count)
{
	copied(doubts, page, pages_count, true);
}

void rbx_doubts_copy_end(struct rbx_doubts *doubts, uint32_t page,
			 uint32_t pages_count, uint8_t written_slots, bool all_have_it)
{
	copied(doubts, page, pages_count, false);
	resolve(doubts, page, pages_count, written_slots, !all_have_it);
}

/* ---- The truth --------------------------------------------------------------*/

/* Other slots that were in no doubt have what the checksum said until now, and perhaps
 * further slots have it, too. */
static void doubt_resolve(struct rbx_doubts *doubts, uint32_t *checksums,
			  uint32_t index, uint8_t other_slots, bool is_tried)
{
	const struct rbx_doubt doubt = doubts->all[index];
	uint8_t doubted_slots = slots_of(doubts, doubt.page);
	const struct rbx_doubt former = {
		.page = doubt.page,
		.checksum = RBX_LOAD_RELAXED(&checksums[doubt.page]),
		.slots = other_slots & (uint8_t)~doubted_slots,
		.is_later = true,
		.is_tried = is_tried,
	};

	RBX_STORE_RELAXED(&checksums[doubt.page], doubt.checksum);
	drop_at(doubts, index);
	resolve(doubts, doubt.page, 1, doubt.slots, true);
	add(doubts, former);
}

/* The slot is in no doubt after that. It missed a write, and perhaps an attempt at it was
 * carried out all the same. */
void rbx_doubts_resolve(struct rbx_doubts *doubts, uint32_t *checksums,
			uint32_t slot, uint8_t other_slots)
{
	uint32_t i = 0;

	while (i < doubts->count) {
		if (doubts->all[i].slots >> slot & 1 && !doubts->all[i].is_copied) {
			doubt_resolve(doubts, checksums, i, other_slots, false);
			i = 0;
		} else {
			i++;
		}
	}
}

void rbx_doubts_look_end(struct rbx_doubts *doubts, uint32_t page, uint32_t pages_count)
{
	for (uint32_t i = 0; i < doubts->count; i++)
		if (is_of(&doubts->all[i], page, pages_count))
			doubts->all[i].is_tried = false;
}

/* Bounded: each call tries one more doubt of the page. */
bool rbx_doubts_yield(struct rbx_doubts *doubts, uint32_t *checksums, uint32_t page,
		      uint32_t pages_count, uint64_t good_pages, uint8_t other_slots)
{
	for (uint32_t i = 0; i < doubts->count; i++) {
		if (!doubts->all[i].is_later || doubts->all[i].is_tried ||
		    !is_of(&doubts->all[i], page, pages_count) ||
		    good_pages >> (doubts->all[i].page - page) & 1)
			continue;
		doubt_resolve(doubts, checksums, i, other_slots, true);
		return true;
	}
	return false;
}
