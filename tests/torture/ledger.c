/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ledger.c - see ledger.h. */
#include "ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define WORDS (LEDGER_PAGE_BYTES / sizeof(uint64_t))
#define MIX 0x9e3779b97f4a7c15ull

int ledger_open(struct ledger *ledger, const char *path, uint64_t pages_count)
{
	size_t bytes = pages_count * sizeof(struct ledger_line);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)bytes))
		err = -errno;
	ledger->lines = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!err && ledger->lines == MAP_FAILED)
		err = -errno;
	close(fd);
	ledger->pages_count = pages_count;
	return err;
}

void ledger_close(struct ledger *ledger)
{
	munmap(ledger->lines, ledger->pages_count * sizeof(struct ledger_line));
}

/* Of the write in the upper half, so that it can be told which one it is of. */
static uint64_t word_of(uint64_t page, uint32_t write, uint32_t at)
{
	uint64_t mixed = (page * WORDS + at + ((uint64_t)write << 40)) * MIX;

	return write ? (uint64_t)write << 32 | mixed >> 32 : 0;
}

void ledger_write(struct ledger *ledger, uint64_t page, void *buf)
{
	struct ledger_line *line = &ledger->lines[page];
	uint64_t *words = buf;
	uint32_t at;

	line->issued++;
	line->newest = line->issued;
	for (at = 0; at < WORDS; at++)
		words[at] = word_of(page, line->issued, at);
}

void ledger_acknowledged(struct ledger *ledger, uint64_t page)
{
	ledger->lines[page].acknowledged = ledger->lines[page].newest;
}

bool ledger_is_right(const struct ledger *ledger, uint64_t page, const void *buf,
		     uint64_t *wrong)
{
	const struct ledger_line *line = &ledger->lines[page];
	const uint64_t *words = buf;
	uint32_t at;

	for (at = 0; at < WORDS; at++) {
		uint32_t write = (uint32_t)(words[at] >> 32);

		*wrong = words[at];
		if (words[at] != word_of(page, write, at) || write < line->acknowledged ||
		    write > line->newest)
			return false;
	}
	return true;
}

void ledger_settle(struct ledger *ledger, uint64_t page, const void *buf)
{
	struct ledger_line *line = &ledger->lines[page];
	const uint64_t *words = buf;
	uint32_t at, write = (uint32_t)(words[0] >> 32);

	for (at = 1; at < WORDS; at++)
		if ((uint32_t)(words[at] >> 32) != write)
			return; /* a write was cut short: any of its words may be there */
	line->acknowledged = write;
	line->newest = write;
}
