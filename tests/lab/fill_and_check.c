/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fill_and_check MIB TURNS: a program that wants more memory than it gets.
 *
 * It fills its memory and says "filled"; then, TURNS times, it checks each page
 * and fills it with something else, by turns in order and in leaps. Every word of
 * a page tells its page, its place there and its turn, so that no page can stand
 * in for another one, nor for what it was before. Exit code 1 names the first
 * word that is wrong.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096u
#define PAGE_WORDS (PAGE_BYTES / sizeof(uint64_t))
#define LEAP_PAGES 257 /* a prime, so that leaps meet each page once */

static uint64_t word_of(size_t page, size_t word, unsigned int turn)
{
	return (page << 32 | word << 16 | turn) * 0x9e3779b97f4a7c15u;
}

static void fill(uint64_t *memory, size_t page, unsigned int turn)
{
	for (size_t i = 0; i < PAGE_WORDS; i++)
		memory[page * PAGE_WORDS + i] = word_of(page, i, turn);
}

static void check(const uint64_t *memory, size_t page, unsigned int turn)
{
	for (size_t i = 0; i < PAGE_WORDS; i++) {
		uint64_t found = memory[page * PAGE_WORDS + i];

		if (found == word_of(page, i, turn))
			continue;
		printf("turn %u, page %zu, word %zu: %" PRIx64 " in place of %" PRIx64 "\n",
		       turn, page, i, found, word_of(page, i, turn));
		exit(1);
	}
}

int main(int argc, char **argv)
{
	size_t pages = argc == 3 ? strtoul(argv[1], NULL, 10) * 256 : 0;
	unsigned int turns = argc == 3 ? (unsigned int)atoi(argv[2]) : 0;
	uint64_t *memory;

	if (!pages || pages % LEAP_PAGES == 0) {
		fprintf(stderr, "usage: fill_and_check MIB TURNS\n");
		return 2;
	}
	memory = mmap(NULL, pages * PAGE_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		perror("fill_and_check");
		return 2;
	}
	setlinebuf(stdout);
	for (size_t page = 0; page < pages; page++)
		fill(memory, page, 0);
	puts("filled");
	for (unsigned int turn = 1; turn <= turns; turn++) {
		for (size_t i = 0; i < pages; i++) {
			size_t page = turn % 2 ? i : i * LEAP_PAGES % pages;

			check(memory, page, turn - 1);
			fill(memory, page, turn);
		}
		printf("turn %u\n", turn);
	}
	return 0;
}
