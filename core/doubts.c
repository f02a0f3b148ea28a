/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * doubts.c - see doubts.h. The lock of the slab guards them, and who looks through all of
 * them does so for a fault.
 *
 * A page may be in doubt more than once, with other contents at other slots; no slot is in
 * two doubts of a page. What a slot has that is in none of them is what its checksum says.
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

static void add(struct rbx_doubts *doubts, struct rbx_doubt doubt)
{
	if ((doubt.slots || doubt.is_later) && doubts->count < RBX_DOUBTS_MAX)
		doubts->all[doubts->count++] = doubt;
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

/* These slots have what the checksums of these pages say. What nobody is known to have any
 * more goes, but for later ones if they are kept. */
static void settle(struct rbx_doubts *doubts, uint32_t page, uint32_t pages_count,
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
	/* Of an attempt at a write before, too, perhaps somebody has it. */
	settle(doubts, page, pages_count, slots, true);
	for (uint32_t i = 0; i < pages_count; i++)
		add(doubts, (struct rbx_doubt){ .page = page + i,
						.checksum = of_pages[i],
						.slots = slots,
						.is_later = true });
}

/* What is the truth is there. */
static void truth_is_known(struct rbx_doubts *doubts, uint32_t page,
			   uint32_t pages_count)
{
	for (uint32_t i = 0; i < doubts->count; i++)
		if (is_of(&doubts->all[i], page, pages_count))
			doubts->all[i].is_later = false;
}

void rbx_doubts_missed(struct rbx_doubts *doubts, const uint32_t *checksums,
		       uint32_t page, uint32_t pages_count, uint8_t missed_slots)
{
	truth_is_known(doubts, page, pages_count);
	for (uint32_t end = page + pages_count; page < end; page++) {
		settle(doubts, page, 1, (uint8_t)~missed_slots, false);
		add_former(doubts, page, RBX_LOAD_RELAXED(&checksums[page]),
			   missed_slots & (uint8_t)~slots_of(doubts, page));
	}
}

void rbx_doubts_drop(struct rbx_doubts *doubts, uint32_t page, uint32_t pages_count)
{
	settle(doubts, page, pages_count, (uint8_t)~0, false);
}

/* What nobody is known to have any more the others may have yet. */
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
	truth_is_known(doubts, page, pages_count);
	copied(doubts, page, pages_count, true);
}

void rbx_doubts_copy_end(struct rbx_doubts *doubts, uint32_t page,
			 uint32_t pages_count, uint8_t written_slots)
{
	copied(doubts, page, pages_count, false);
	settle(doubts, page, pages_count, written_slots, false);
}

/* ---- The truth --------------------------------------------------------------*/

/* Those of the others that were in no doubt have what the checksum said until now. */
static void doubt_resolve(struct rbx_doubts *doubts, uint32_t *checksums,
			  uint32_t index, uint8_t other_slots)
{
	const struct rbx_doubt doubt = doubts->all[index];
	uint32_t former = RBX_LOAD_RELAXED(&checksums[doubt.page]);
	uint8_t doubted_slots = slots_of(doubts, doubt.page);

	RBX_STORE_RELAXED(&checksums[doubt.page], doubt.checksum);
	drop_at(doubts, index);
	settle(doubts, doubt.page, 1, doubt.slots, true);
	add_former(doubts, doubt.page, former, other_slots & (uint8_t)~doubted_slots);
}

/* One that is resolved is in no doubt of the slot any more. */
void rbx_doubts_resolve(struct rbx_doubts *doubts, uint32_t *checksums,
			uint32_t slot, uint8_t other_slots)
{
	uint32_t i = 0;

	while (i < doubts->count) {
		if (doubts->all[i].slots >> slot & 1 && !doubts->all[i].is_copied) {
			doubt_resolve(doubts, checksums, i, other_slots);
			i = 0;
		} else {
			i++;
		}
	}
}

bool rbx_doubts_yield(struct rbx_doubts *doubts, uint32_t *checksums, uint32_t page,
		      uint32_t pages_count, uint64_t good_pages, uint8_t other_slots)
{
	for (uint32_t i = 0; i < doubts->count; i++) {
		if (!doubts->all[i].is_later ||
		    !is_of(&doubts->all[i], page, pages_count) ||
		    good_pages >> (doubts->all[i].page - page) & 1)
			continue;
		doubt_resolve(doubts, checksums, i, other_slots);
		return true;
	}
	return false;
}
