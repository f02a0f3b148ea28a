// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * swap_pages.c - fills pages and checks them again: the simplest load for a swap device.
 *
 * Usage: swap_pages BYTES
 *
 * If it runs with less memory than BYTES, each page that is touched has to be read from swap,
 * and another one has to be written there. Each is touched three times: filled in order,
 * checked in order, and checked and changed in random order, as by a program that works on
 * its memory. The contents of a page follow from its number and do not compress, and every
 * word is checked.
 *
 * Prints JSON: pages, and the seconds that each of the three took. Exit code 1 if a page came
 * back with other contents.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define PAGE_BYTES 4096u
#define PAGE_WORDS (PAGE_BYTES / sizeof(uint64_t))

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A step of xorshift: short, so that swapping is the load and not this. */
static uint64_t step(uint64_t x)
{
	x ^= x << 13;
	x ^= x >> 7;
	return x ^ x << 17;
}

static void fill(uint64_t *page, uint64_t seed)
{
	for (size_t i = 0; i < PAGE_WORDS; i++)
		page[i] = seed = step(seed);
}

static void check(const uint64_t *page, uint64_t seed, size_t number)
{
	for (size_t i = 0; i < PAGE_WORDS; i++) {
		seed = step(seed);
		if (page[i] == seed)
			continue;
		fprintf(stderr, "swap_pages: page %zu, word %zu is %016jx, not %016jx\n", number,
			i, (uintmax_t)page[i], (uintmax_t)seed);
		exit(1);
	}
}

/* All numbers below count, once each, in random order (Fisher and Yates). */
static uint32_t *shuffled(uint32_t count)
{
	uint32_t *order = malloc(count * sizeof(*order));
	uint64_t random = 88172645463325252u;

	for (uint32_t i = 0; order && i < count; i++) {
		uint32_t other;

		random = step(random);
		other = (uint32_t)(random % (i + 1));
		order[i] = order[other];
		order[other] = i;
	}
	return order;
}

int main(int argc, char **argv)
{
	uint32_t count = argc == 2 ? (uint32_t)(strtoull(argv[1], NULL, 10) / PAGE_BYTES) : 0;
	double begin_s, filled_s, checked_s, end_s;
	uint32_t *order;
	uint64_t *memory;

	if (count == 0) {
		fprintf(stderr, "usage: swap_pages BYTES\n");
		return 2;
	}
	memory = mmap(NULL, (size_t)count * PAGE_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	order = shuffled(count);
	if (memory == MAP_FAILED || !order) {
		perror("swap_pages");
		return 2;
	}
	begin_s = now_s();
	for (uint32_t i = 0; i < count; i++)
		fill(memory + i * PAGE_WORDS, i + 1);
	filled_s = now_s();
	for (uint32_t i = 0; i < count; i++)
		check(memory + i * PAGE_WORDS, i + 1, i);
	checked_s = now_s();
	for (uint32_t i = 0; i < count; i++) {
		uint64_t *page = memory + order[i] * PAGE_WORDS;

		check(page, order[i] + 1u, order[i]);
		page[0] = 0;
	}
	end_s = now_s();
	printf("{\"pages\": %u, \"fill_s\": %.6f, \"in_order_s\": %.6f, \"random_s\": %.6f}\n", count,
	       filled_s - begin_s, checked_s - filled_s, end_s - checked_s);
	return 0;
}
