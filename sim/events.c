/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * events.c - the queue of events, a timing wheel.
 *
 * Time is read as digits of twelve bits. An event is on the level of the highest digit in
 * which its time differs from now, in the slot of that digit. Level 0 holds the current 4 us,
 * each slot a nanosecond of them. So the lowest level that is not empty has the next event,
 * in its first slot that is not empty. If that is not level 0, now becomes the beginning of
 * that slot, and its events move to lower levels. Most events are near: they move once or
 * never, and nothing is sorted.
 *
 * Events of the same moment are always in the same slot, and each step keeps their order, so
 * they run in the order in which they were queued.
 */
#include "sim/events.h"

#define WORD_BITS 64u
#define DIGIT_BITS 12u
#define SLOTS (WORD_BITS * WORD_BITS)
#define LEVELS ((64u + DIGIT_BITS - 1) / DIGIT_BITS)

RBX_STATIC_ASSERT(SLOTS == 1u << DIGIT_BITS, "two words find a slot");

static struct level {
	uint64_t words; /* a bit for each word below that is not 0 */
	uint64_t taken[WORD_BITS]; /* a bit for each slot that is not empty */
	struct slot {
		struct rbx_sim_event *first, *last;
	} slots[SLOTS];
} levels[LEVELS];

static uint32_t levels_taken; /* a bit for each that is not empty */
static uint64_t now_ns, run_count;

uint64_t rbx_sim_now(void)
{
	return now_ns;
}

uint64_t rbx_sim_events_run(void)
{
	return run_count;
}

static inline void add(struct rbx_sim_event *event)
{
	uint64_t differs = (event->at_ns ^ now_ns) | 1;
	uint32_t number = (63 - (uint32_t)__builtin_clzll(differs)) / DIGIT_BITS;
	uint32_t digit =
		(uint32_t)(event->at_ns >> number * DIGIT_BITS) % SLOTS;
	struct level *level = &levels[number];
	struct slot *slot = &level->slots[digit];

	event->place = number * SLOTS + digit + 1;
	event->next = NULL;
	event->previous = slot->last;
	if (slot->last)
		slot->last->next = event;
	else
		slot->first = event;
	slot->last = event;
	level->taken[digit / WORD_BITS] |= 1ull << digit % WORD_BITS;
	level->words |= 1ull << digit / WORD_BITS;
	levels_taken |= 1u << number;
}

/* The slot is empty. */
static inline void mark_empty(uint32_t number, uint32_t digit)
{
	struct level *level = &levels[number];
	uint64_t *taken = &level->taken[digit / WORD_BITS];

	*taken &= ~(1ull << digit % WORD_BITS);
	if (*taken != 0)
		return;
	level->words &= ~(1ull << digit / WORD_BITS);
	if (level->words == 0)
		levels_taken &= ~(1u << number);
}

static inline void take_out(struct rbx_sim_event *event, uint32_t number,
			    uint32_t digit)
{
	struct slot *slot = &levels[number].slots[digit];

	event->place = 0;
	if (event->previous)
		event->previous->next = event->next;
	else
		slot->first = event->next;
	if (event->next)
		event->next->previous = event->previous;
	else
		slot->last = event->previous;
	if (!slot->first)
		mark_empty(number, digit);
}

void rbx_sim_cancel(struct rbx_sim_event *event)
{
	uint32_t index = event->place - 1;

	if (rbx_sim_is_queued(event))
		take_out(event, index / SLOTS, index % SLOTS);
}

void rbx_sim_at(struct rbx_sim_event *event, uint64_t at_ns)
{
	if (rbx_sim_is_queued(event))
		rbx_sim_cancel(event);
	event->at_ns = RBX_MAX(at_ns, now_ns);
	add(event);
}

void rbx_sim_after(struct rbx_sim_event *event, uint64_t delay_ns)
{
	rbx_sim_at(event, now_ns + delay_ns);
}

/* The first slot of a level that is not empty. */
static inline uint32_t first_digit(const struct level *level)
{
	uint32_t word = (uint32_t)__builtin_ctzll(level->words);

	return word * WORD_BITS + (uint32_t)__builtin_ctzll(level->taken[word]);
}

/* Goes to the beginning of a slot, and moves its events to lower levels. */
static void enter(uint32_t number, uint32_t digit)
{
	struct slot *slot = &levels[number].slots[digit];
	struct rbx_sim_event *event = slot->first, *next;
	uint32_t shift = number * DIGIT_BITS;

	now_ns = event->at_ns >> shift << shift;
	*slot = (struct slot){ 0 };
	mark_empty(number, digit);
	for (; event; event = next) {
		next = event->next;
		add(event);
	}
}

bool rbx_sim_step(void)
{
	struct rbx_sim_event *event;
	uint32_t number, digit;

	for (;;) {
		if (levels_taken == 0)
			return false;
		number = (uint32_t)__builtin_ctz(levels_taken);
		digit = first_digit(&levels[number]);
		if (number == 0)
			break;
		enter(number, digit);
	}
	event = levels[0].slots[digit].first;
	take_out(event, 0, digit);
	now_ns = event->at_ns;
	run_count++;
	event->run(event);
	return true;
}

void rbx_sim_events_reset(void)
{
	while (levels_taken != 0) {
		uint32_t number = (uint32_t)__builtin_ctz(levels_taken);
		uint32_t digit = first_digit(&levels[number]);

		take_out(levels[number].slots[digit].first, number, digit);
	}
	now_ns = 0;
	run_count = 0;
}
