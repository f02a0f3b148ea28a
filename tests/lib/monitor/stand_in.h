/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stand_in.h - a small cache of registrations, as a listener of the monitor.
 *
 * In place of a NIC there is io_uring (pinning.h). A registration reads what is in its pages,
 * also if something else has been mapped at their address since. So if a stale one is used,
 * the bytes are wrong.
 */
#ifndef TESTS_STAND_IN_H
#define TESTS_STAND_IN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/monitor/monitor.h"
#include "tests/lib/monitor/pinning.h"

#define STAND_IN_REGIONS_MAX 64
#define PAGE 4096u

/* Where nobody maps anything by chance, as run-time libraries of sanitizers do: what a test
 * has unmapped is free until it maps there again. A hint for mmap(). */
#define TEST_ADDRESSES 0x7e9000000000ull

enum region_state {
	REGION_FREE,
	REGION_REGISTERING, /* changed() may mark it, nobody finds it */
	REGION_CACHED, /* may be found */
	REGION_DROPPED, /* to be deregistered by the next caller */
};

struct stand_in_region {
	enum region_state state;
	bool is_marked;
	bool is_watched;
	uint8_t *addr;
	size_t bytes;
};

struct stand_in {
	struct rbx_memory_monitor_listener listener; /* the first member */
	pthread_mutex_t lock; /* guards all below; taken in changed() */
	struct pinning device; /* the lock is held to read */
	struct stand_in_region regions[STAND_IN_REGIONS_MAX]; /* of the slots of the device */
	uint32_t hits_count;
	uint32_t told_count; /* calls of changed() */
	uintptr_t told_start; /* of the last one */
	uintptr_t told_end;
	bool is_deaf; /* changed() does nothing: shows that a stale registration is noticed */
};

void stand_in_open(struct stand_in *cache, enum rbx_memory_monitor_mode mode);
void stand_in_close(struct stand_in *cache);

/*
 * Lets the "device" read one 8-byte word at each page's start of whole pages, through a cached
 * registration or a new one, which is cached if it may be. Returns 0, or -errno if the pages
 * cannot be registered. words: one per page.
 */
int stand_in_read(struct stand_in *cache, uint8_t *addr, size_t pages, uint64_t *words);

/* How often changed() was called. */
uint32_t stand_in_told(struct stand_in *cache);
uint32_t stand_in_hits(struct stand_in *cache);

/* Writes a word at the start of each page. */
void pages_stamp(uint8_t *addr, size_t pages, uint64_t word);

#endif
