/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * history.h - what a read of a volume may return, given all writes.
 *
 * The volume is seen in units of 64 bytes, each filled with the number of the
 * write that wrote it last; 0 is never written, or discarded since. Requests that are outstanding
 * together have no order, so a read may return a unit of any write that covers
 * it and that began before the read ended, unless another write of that unit
 * began after the first one had ended and was acknowledged before the read
 * began. That one must have been seen.
 *
 * The proof needs two times per write and one per unit: the latest begin of
 * all acknowledged writes of the unit. Time is a counter. One thread at a time.
 */
#ifndef RBX_TEST_HISTORY_H
#define RBX_TEST_HISTORY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HISTORY_UNIT_BYTES 64u
#define HISTORY_WRITES_MAX 65536u

struct history_write {
	uint32_t first_unit;
	uint32_t unit_count;
	uint64_t begin;
	uint64_t end; /* UINT64_MAX: outstanding, or of unknown outcome */
};

struct history {
	uint64_t now;
	uint32_t write_count; /* write 0 is the zeros of the beginning */
	struct history_write *writes;
	uint32_t unit_count;
	uint64_t *floors; /* latest begin of the unit's acknowledged writes */
	uint64_t *zero_ends; /* when the unit was last discarded; 0: never */
};

static inline void history_init(struct history *history, uint64_t size_bytes)
{
	history->now = 1;
	history->write_count = 1;
	history->unit_count = (uint32_t)(size_bytes / HISTORY_UNIT_BYTES);
	history->writes = calloc(HISTORY_WRITES_MAX, sizeof(*history->writes));
	history->floors = calloc(history->unit_count, sizeof(*history->floors));
	history->zero_ends =
		calloc(history->unit_count, sizeof(*history->zero_ends));
}

static inline void history_free(struct history *history)
{
	free(history->writes);
	free(history->floors);
	free(history->zero_ends);
}

/* Fills buf, of whole units, with the number of the new write. */
static inline uint32_t history_write_begin(struct history *history,
					   uint64_t offset, uint32_t length,
					   void *buf)
{
	uint32_t number = history->write_count++;
	uint16_t *words = buf;
	uint32_t i;

	if (number >= HISTORY_WRITES_MAX)
		abort();
	history->writes[number] = (struct history_write){
		.first_unit = (uint32_t)(offset / HISTORY_UNIT_BYTES),
		.unit_count = length / HISTORY_UNIT_BYTES,
		.begin = history->now++,
		.end = UINT64_MAX,
	};
	for (i = 0; i < length / 2; i++)
		words[i] = (uint16_t)number;
	return number;
}

/* A write that failed may have taken effect or not, or may still do. */
static inline void history_write_end(struct history *history, uint32_t number,
				     bool acknowledged)
{
	struct history_write *write = &history->writes[number];
	uint32_t i;

	if (!acknowledged)
		return;
	write->end = history->now++;
	for (i = 0; i < write->unit_count; i++) {
		uint64_t *floor = &history->floors[write->first_unit + i];

		if (*floor < write->begin)
			*floor = write->begin;
	}
}

/* A write that failed has taken effect or not; nothing of it is under way any more. */
static inline void history_write_over(struct history *history, uint32_t number)
{
	history->writes[number].end = history->now++;
}

/* A write of zeros that has ended at once. */
static inline void history_discard(struct history *history, uint64_t offset,
				   uint32_t length)
{
	uint32_t unit = (uint32_t)(offset / HISTORY_UNIT_BYTES);
	uint32_t end = unit + length / HISTORY_UNIT_BYTES;

	for (; unit < end; unit++) {
		history->floors[unit] = history->now;
		history->zero_ends[unit] = history->now;
	}
	history->now++;
}

/* floors: one for each unit of the read, kept by the reader. */
static inline void history_read_begin(const struct history *history,
				      uint64_t offset, uint32_t length,
				      uint64_t *floors)
{
	memcpy(floors, &history->floors[offset / HISTORY_UNIT_BYTES],
	       length / HISTORY_UNIT_BYTES * sizeof(*floors));
}

/* Whether a unit may hold the number, given the floor of the read. */
static inline bool history_number_is_legal(const struct history *history,
					   uint16_t number, uint32_t unit,
					   uint64_t floor)
{
	const struct history_write *write = &history->writes[number];

	if (number == 0)
		return history->zero_ends[unit] >= floor;
	return number < history->write_count &&
	       unit - write->first_unit < write->unit_count &&
	       write->end >= floor;
}

/*
 * What is promised holds for each byte, so a word may be torn between the
 * writes of its two neighbours.
 */
static inline bool history_word_is_legal(const struct history *history,
					 const uint16_t *words, uint32_t count,
					 uint32_t i, uint32_t unit,
					 uint64_t floor)
{
	uint8_t torn[2];

	if (history_number_is_legal(history, words[i], unit, floor))
		return true;
	if (i == 0 || i + 1 == count ||
	    !history_number_is_legal(history, words[i - 1], unit, floor) ||
	    !history_number_is_legal(history, words[i + 1], unit, floor))
		return false;
	memcpy(&torn[0], &words[i - 1], 1);
	memcpy(&torn[1], (const uint8_t *)&words[i + 1] + 1, 1);
	return memcmp(torn, &words[i], sizeof(torn)) == 0;
}

static inline bool history_read_is_legal(const struct history *history,
					 uint64_t offset, uint32_t length,
					 const uint64_t *floors,
					 const void *buf)
{
	const uint16_t *words = buf;
	uint32_t i;

	for (i = 0; i < length / 2; i++) {
		uint32_t unit = (uint32_t)(offset + 2 * i) / HISTORY_UNIT_BYTES;

		if (!history_word_is_legal(
			    history, words, length / 2, i, unit,
			    floors[2 * i / HISTORY_UNIT_BYTES]))
			return false;
	}
	return true;
}

#endif
