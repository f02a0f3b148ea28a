/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ledger.h - what a volume must hold, in a file that outlives the program that writes to it.
 *
 * Each page of the volume has a line: the last write that was acknowledged, and the last one that
 * may have reached a server. Each word of a page names the page and the write that it is of. So a
 * page is right if all of its words are of writes from the first to the second of these, however
 * often the program or its servers were killed. A line is changed before a write is submitted, and
 * again when it has completed. The file is mapped: what a killed program wrote there stays.
 */
#ifndef RBX_TESTS_LEDGER_H
#define RBX_TESTS_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#define LEDGER_PAGE_BYTES 4096u

struct ledger_line {
	uint32_t acknowledged; /* 0: none, the page is zeros */
	uint32_t newest; /* that the page may hold */
	uint32_t issued; /* that there ever was: the next one is later */
	uint32_t reserved;
};

struct ledger {
	struct ledger_line *lines;
	uint64_t pages_count;
};

/* Makes the file if it is not there. 0 or -errno. */
int ledger_open(struct ledger *ledger, const char *path, uint64_t pages_count);
void ledger_close(struct ledger *ledger);

/* A write begins: fills the buffer with what it is to write. */
void ledger_write(struct ledger *ledger, uint64_t page, void *buf);
/* It has completed without an error. */
void ledger_acknowledged(struct ledger *ledger, uint64_t page);

/* Whether a page holds what it may. wrong: receives the first word that is not allowed. */
bool ledger_is_right(const struct ledger *ledger, uint64_t page, const void *buf,
		     uint64_t *wrong);
/* The page was read by one who has just opened the volume: what it holds it keeps. */
void ledger_settle(struct ledger *ledger, uint64_t page, const void *buf);

#endif
