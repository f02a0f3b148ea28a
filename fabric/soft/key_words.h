/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * key_words.h - what peers on this host see of a domain's keys.
 */
#ifndef SOFT_KEY_WORDS_H
#define SOFT_KEY_WORDS_H

#include <stdatomic.h>

#include "../fabric.h"
#include "limits.h"

typedef _Atomic uint32_t soft_key_word;

#define SOFT_KEY_WORDS_BYTES (SOFT_KEY_COUNT * sizeof(soft_key_word))

struct soft_key_words {
	/* One word for each key, by its index: the key while it is valid, else 0. The owner
	 * writes and never reads them. NULL: nothing is shared. */
	soft_key_word *words;
	int fd; /* sealed; sent to peers together with memory of the domain */
};

int soft_key_words_open(struct soft_key_words *words);
void soft_key_words_close(struct soft_key_words *words);

/* Maps a table of a peer, for reading; NULL if it is not one. Borrows fd. */
const soft_key_word *soft_key_words_map(int fd);
void soft_key_words_unmap(const soft_key_word *words); /* NULL: nothing */

/* Whether a memory file has so many bytes, and cannot shrink below that. */
bool soft_file_keeps(int fd, uint64_t end_bytes);

#endif
