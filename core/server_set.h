/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * server_set.h - a set of the servers of a volume: a bit for each place in its table.
 *
 * It takes 128 bytes for 1,024 servers, so it fits on any stack. Counting its members takes
 * 16 steps.
 */
#ifndef RBX_SERVER_SET_H
#define RBX_SERVER_SET_H

#include "core/limits.h"
#include "core/port.h"

#define RBX_SERVER_SET_WORDS (RBX_SERVERS_MAX / 64)
RBX_STATIC_ASSERT(RBX_SERVERS_MAX % 64 == 0, "a set is whole words");

struct rbx_server_set {
	uint64_t words[RBX_SERVER_SET_WORDS];
};

static inline void rbx_server_set_add(struct rbx_server_set *set,
				      uint32_t server)
{
	RBX_ASSERT(server < RBX_SERVERS_MAX);
	set->words[server / 64] |= (uint64_t)1 << server % 64;
}

static inline void rbx_server_set_remove(struct rbx_server_set *set,
					 uint32_t server)
{
	RBX_ASSERT(server < RBX_SERVERS_MAX);
	set->words[server / 64] &= ~((uint64_t)1 << server % 64);
}

static inline bool rbx_server_set_has(const struct rbx_server_set *set,
				      uint32_t server)
{
	RBX_ASSERT(server < RBX_SERVERS_MAX);
	return set->words[server / 64] >> server % 64 & 1;
}

static inline void rbx_server_set_join(struct rbx_server_set *set,
				       const struct rbx_server_set *other)
{
	uint32_t i;

	for (i = 0; i < RBX_SERVER_SET_WORDS; i++)
		set->words[i] |= other->words[i];
}

/* Members of one word. Not the compiler's builtin: without a CPU instruction for it that is a
 * call into the compiler's library, which a kernel does not have. */
static inline uint32_t rbx_server_set_count_word(uint64_t word)
{
	word -= word >> 1 & 0x5555555555555555ull;
	word = (word & 0x3333333333333333ull) +
	       (word >> 2 & 0x3333333333333333ull);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return (uint32_t)(word * 0x0101010101010101ull >> 56);
}

static inline uint32_t rbx_server_set_count(const struct rbx_server_set *set)
{
	uint32_t i, count = 0;

	for (i = 0; i < RBX_SERVER_SET_WORDS; i++)
		count += rbx_server_set_count_word(set->words[i]);
	return count;
}

/* The nth lowest member, from 0. There are more than n. */
static inline uint32_t rbx_server_set_member(const struct rbx_server_set *set,
					     uint32_t nth)
{
	uint32_t i = 0, count;
	uint64_t word;

	while (nth >= (count = rbx_server_set_count_word(set->words[i]))) {
		nth -= count;
		i++;
		RBX_ASSERT(i < RBX_SERVER_SET_WORDS);
	}
	word = set->words[i];
	while (nth--)
		word &= word - 1;
	return i * 64 + (uint32_t)__builtin_ctzll(word);
}

#endif
