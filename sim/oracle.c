/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* oracle.c - see oracle.h. */
#include "sim/oracle.h"

#include <inttypes.h>
#include <stdlib.h>

#include "sim/fail.h"
#include "sim/tally.h"

#define WORDS (RBX_SIM_UNIT_BYTES / 8)
#define NEVER UINT64_MAX

/* A word: client, write, unit. All zeros: never written, or discarded. */
#define UNIT_BITS 24
#define NUMBER_BITS 32

struct entry {
	uint32_t number; /* 0: the initial state */
	bool is_zeros;
	uint64_t submitted, completed, superseded;
};

struct unit {
	struct entry *entries;
	uint32_t count, room;
};

struct rbx_sim_oracle {
	uint64_t client;
	uint64_t moment;
	uint64_t forget_before;
	uint32_t last_number;
	uint32_t units_count;
	struct unit units[];
};

static void entry_add(struct unit *unit, struct entry entry)
{
	if (unit->count == unit->room) {
		unit->room = unit->room ? 2 * unit->room : 4;
		unit->entries = realloc(unit->entries,
					unit->room * sizeof(*unit->entries));
		if (!unit->entries)
			abort();
	}
	unit->entries[unit->count++] = entry;
}

struct rbx_sim_oracle *rbx_sim_oracle_make(uint32_t client, uint64_t size_bytes)
{
	uint32_t count = (uint32_t)(size_bytes / RBX_SIM_UNIT_BYTES);
	struct rbx_sim_oracle *oracle =
		calloc(1, sizeof(*oracle) + count * sizeof(struct unit));

	if (!oracle)
		abort();
	RBX_ASSERT(count < 1u << UNIT_BITS);
	oracle->client = client;
	oracle->units_count = count;
	for (uint32_t i = 0; i < count; i++)
		entry_add(&oracle->units[i], (struct entry){ 0, true, 0, 0, NEVER });
	return oracle;
}

void rbx_sim_oracle_free(struct rbx_sim_oracle *oracle)
{
	for (uint32_t i = 0; i < oracle->units_count; i++)
		free(oracle->units[i].entries);
	free(oracle);
}

uint64_t rbx_sim_oracle_moment(struct rbx_sim_oracle *oracle)
{
	return ++oracle->moment;
}

void rbx_sim_oracle_forget(struct rbx_sim_oracle *oracle, uint64_t before)
{
	oracle->forget_before = before;
}

static uint64_t word_of(const struct rbx_sim_oracle *oracle, uint32_t number,
			uint32_t unit)
{
	return oracle->client << (NUMBER_BITS + UNIT_BITS) |
	       (uint64_t)number << UNIT_BITS | unit;
}

static void forget(struct unit *unit, uint64_t before)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < unit->count; i++)
		if (unit->entries[i].superseded >= before)
			unit->entries[kept++] = unit->entries[i];
	unit->count = kept;
}

/* From now on the next write may be found. Returns its number. */
static uint32_t begin(struct rbx_sim_oracle *oracle, uint64_t offset,
		      uint64_t length_bytes, bool is_zeros)
{
	uint64_t moment = rbx_sim_oracle_moment(oracle);
	uint32_t number = ++oracle->last_number;
	uint32_t first = (uint32_t)(offset / RBX_SIM_UNIT_BYTES);
	uint32_t count = (uint32_t)(length_bytes / RBX_SIM_UNIT_BYTES);

	for (uint32_t i = first; i < first + count; i++) {
		struct unit *unit = &oracle->units[i];

		if (unit->count == unit->room)
			forget(unit, oracle->forget_before);
		entry_add(unit, (struct entry){ number, is_zeros, moment, NEVER,
						NEVER });
	}
	return number;
}

uint32_t rbx_sim_oracle_write(struct rbx_sim_oracle *oracle, uint64_t offset,
			      void *buf, uint32_t length_bytes)
{
	uint32_t number = begin(oracle, offset, length_bytes, false);
	uint32_t first = (uint32_t)(offset / RBX_SIM_UNIT_BYTES);
	uint32_t count = length_bytes / RBX_SIM_UNIT_BYTES;
	uint64_t *words = buf;

	for (uint32_t i = first; i < first + count; i++)
		for (uint32_t j = 0; j < WORDS; j++)
			*words++ = word_of(oracle, number, i);
	return number;
}

uint32_t rbx_sim_oracle_discard(struct rbx_sim_oracle *oracle, uint64_t offset,
				uint64_t length_bytes)
{
	return begin(oracle, offset, length_bytes, true);
}

static void supersede(struct unit *unit, const struct entry *by, uint64_t now)
{
	for (uint32_t i = 0; i < unit->count; i++) {
		struct entry *entry = &unit->entries[i];

		if (entry->completed < by->submitted &&
		    entry->superseded == NEVER)
			entry->superseded = now;
	}
}

void rbx_sim_oracle_written(struct rbx_sim_oracle *oracle, uint64_t offset,
			    uint64_t length_bytes, uint32_t number,
			    int32_t status)
{
	uint64_t moment = rbx_sim_oracle_moment(oracle);
	uint32_t first = (uint32_t)(offset / RBX_SIM_UNIT_BYTES);
	uint32_t count = (uint32_t)(length_bytes / RBX_SIM_UNIT_BYTES);

	for (uint32_t i = first; i < first + count; i++) {
		struct unit *unit = &oracle->units[i];
		struct entry *entry = unit->entries;

		while (entry->number != number)
			entry++;
		entry->completed = moment;
		if (status == 0)
			supersede(unit, entry, moment);
	}
}

static const struct entry *entry_find(const struct unit *unit, uint32_t number)
{
	for (uint32_t i = 0; i < unit->count; i++)
		if (unit->entries[i].number == number)
			return &unit->entries[i];
	return NULL;
}

bool rbx_sim_oracle_has_writes(const struct rbx_sim_oracle *oracle, uint64_t offset,
			       uint64_t length_bytes)
{
	uint32_t first = (uint32_t)(offset / RBX_SIM_UNIT_BYTES);
	uint32_t count = (uint32_t)(length_bytes / RBX_SIM_UNIT_BYTES);

	for (uint32_t i = first; i < first + count && i < oracle->units_count; i++) {
		const struct entry *initial = entry_find(&oracle->units[i], 0);

		if (!initial || initial->superseded != NEVER)
			return true;
	}
	return false;
}

static uint32_t number_found(const struct entry *entry)
{
	return entry->is_zeros ? 0 : entry->number;
}

static void check_word(const struct rbx_sim_oracle *oracle, uint32_t index,
		       uint64_t word, uint64_t submitted)
{
	const struct unit *unit = &oracle->units[index];
	uint64_t client = word >> (NUMBER_BITS + UNIT_BITS);
	uint32_t number = (uint32_t)(word >> UNIT_BITS);
	bool was_there = false;

	if (word != 0 && client != oracle->client)
		rbx_sim_fail(client < 128 ? "private" : "contents",
			     "client %" PRIu64 " reads %#" PRIx64 " in unit %u",
			     oracle->client, word, index);
	if (word != 0 && (word & ((1u << UNIT_BITS) - 1)) != index)
		rbx_sim_fail("contents",
			     "client %" PRIu64 ": unit %u holds unit %" PRIu64,
			     oracle->client, index,
			     word & ((1u << UNIT_BITS) - 1));
	for (uint32_t i = 0; i < unit->count; i++) {
		if (number_found(&unit->entries[i]) != number)
			continue;
		if (unit->entries[i].superseded >= submitted)
			return;
		was_there = true;
	}
	rbx_sim_fail("contents",
		     "client %" PRIu64 ": unit %u holds write %u%s",
		     oracle->client, index, number,
		     was_there ? " of old" : ", long gone");
}

bool rbx_sim_oracle_may_follow(const struct rbx_sim_oracle *oracle, uint64_t offset,
			       const void *buf, uint32_t number)
{
	const struct unit *unit = &oracle->units[offset / RBX_SIM_UNIT_BYTES];
	const struct entry *write = entry_find(unit, number);
	const uint64_t *words = buf;

	for (uint32_t i = 0; i < WORDS; i++) {
		const struct entry *entry =
			entry_find(unit, (uint32_t)(words[i] >> UNIT_BITS));

		if (!entry || entry->completed < write->submitted)
			return false;
	}
	return true;
}

void rbx_sim_oracle_read(struct rbx_sim_oracle *oracle, uint64_t offset,
			 const void *buf, uint32_t length_bytes,
			 uint64_t submitted)
{
	uint32_t first = (uint32_t)(offset / RBX_SIM_UNIT_BYTES);
	uint32_t count = length_bytes / RBX_SIM_UNIT_BYTES;
	const uint64_t *words = buf;

	rbx_sim_tally(RBX_SIM_TALLY_units_read, count);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t last = words[0];

		check_word(oracle, first + i, last, submitted);
		for (uint32_t j = 1; j < WORDS; j++) {
			if (words[j] != last)
				check_word(oracle, first + i, words[j],
					   submitted);
			last = words[j];
		}
		words += WORDS;
	}
}
