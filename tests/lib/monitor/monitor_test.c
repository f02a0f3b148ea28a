/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * monitor_test.c - memory that is unmapped, moved, discarded or shrunk is never reached by an
 * old registration. Each case caches a registration, makes one change, puts other bytes at the
 * same address, and looks at what the device reads there (stand_in.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "include/rdmabox/rdmabox.h"
#include "tests/lib/monitor/stand_in.h"

#define PAGES 8u
#define HUGE_BYTES ((size_t)2 << 20)
/* Of Linux 6.13. */
#define GUARD_INSTALL 102
#define GUARD_REMOVE 103
#define DISCARDS 80u
#define OLD 0x1111111111111111ull
#define NEW 0x2222222222222222ull

/* Asked by the run-time library of TSan: here a child of fork() starts threads. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

static struct stand_in cache;

/* at: NULL for addresses that no test has had. */
static uint8_t *map_at(void *at, size_t pages, int flags)
{
	static uintptr_t next = TEST_ADDRESSES;
	uint8_t *addr = mmap(at ? at : (void *)next, pages * PAGE, PROT_READ | PROT_WRITE,
			     MAP_ANONYMOUS | (flags & MAP_SHARED ? 0 : MAP_PRIVATE) | flags, -1,
			     0);

	assert_ptr_not_equal(addr, MAP_FAILED);
	next += 64u * PAGE;
	return addr;
}

/* The device reads this word in each of these pages. */
static void expect_words(uint8_t *addr, size_t pages, uint64_t word)
{
	uint64_t words[PAGES * 2] = { 0 };

	assert_int_equal(stand_in_read(&cache, addr, pages, words), 0);
	for (size_t i = 0; i < pages; i++)
		assert_int_equal(words[i], word);
}

/* Until a look-up hits. At first these addresses may be in doubt: another test has discarded
 * what was there. */
static void expect_cached(uint8_t *addr, size_t pages, uint64_t word)
{
	uint32_t hits = stand_in_hits(&cache);

	while (stand_in_hits(&cache) == hits)
		expect_words(addr, pages, word);
}

/* Pages of OLD, whose registration is cached. */
static uint8_t *map_cached(void)
{
	uint8_t *addr = map_at(NULL, PAGES, 0);

	pages_stamp(addr, PAGES, OLD);
	expect_cached(addr, PAGES, OLD);
	return addr;
}

static int setup(void **state)
{
	(void)state;
	stand_in_open(&cache, RBX_MEMORY_MONITOR_USERFAULTFD);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	stand_in_close(&cache);
	return 0;
}

/* The other tests can fail: if nobody were told, the device would read the old bytes. */
static void unmap_untold_is_stale(void **state)
{
	uint8_t *addr = map_cached();

	(void)state;
	pthread_mutex_lock(&cache.lock);
	cache.is_deaf = true;
	pthread_mutex_unlock(&cache.lock);
	munmap(addr, PAGES * PAGE);
	map_at(addr, PAGES, MAP_FIXED_NOREPLACE);
	pages_stamp(addr, PAGES, NEW);
	expect_words(addr, PAGES, OLD);
	munmap(addr, PAGES * PAGE);
}

/* Unmaps pages of a cached region, and maps others there. */
static void check_unmap(size_t first, size_t count)
{
	uint8_t *addr = map_cached();
	uint8_t *part = addr + first * PAGE;

	munmap(part, count * PAGE);
	map_at(part, count, MAP_FIXED_NOREPLACE);
	pages_stamp(part, count, NEW);
	expect_words(part, count, NEW);
	pages_stamp(addr, PAGES, NEW + 1);
	expect_words(addr, PAGES, NEW + 1);
	munmap(addr, PAGES * PAGE);
}

static void unmap_of_all_is_told(void **state)
{
	(void)state;
	check_unmap(0, PAGES);
}

static void unmap_of_a_part_is_told(void **state)
{
	(void)state;
	check_unmap(0, 1);
	check_unmap(PAGES - 1, 1);
	check_unmap(3, 2);
}

static void mapping_over_is_told(void **state)
{
	uint8_t *addr = map_cached();

	(void)state;
	map_at(addr + PAGE, 2, MAP_FIXED);
	pages_stamp(addr, PAGES, NEW);
	expect_words(addr, PAGES, NEW);
	munmap(addr, PAGES * PAGE);
}

static void moving_is_told(void **state)
{
	uint8_t *addr = map_cached();
	uint8_t *to = map_at(NULL, PAGES, 0);

	(void)state;
	assert_ptr_equal(mremap(addr, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
				to),
			 to);
	map_at(addr, PAGES, MAP_FIXED_NOREPLACE);
	pages_stamp(addr, PAGES, NEW);
	expect_words(addr, PAGES, NEW);
	expect_words(to, PAGES, OLD);
	munmap(addr, PAGES * PAGE);
	munmap(to, PAGES * PAGE);
}

/* The mapping stays, with new pages; only REMAP tells of it. */
static void moving_the_pages_alone_is_told(void **state)
{
	uint8_t *addr = map_cached();
	uint8_t *to = mremap(addr, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP,
			     NULL);

	(void)state;
	assert_ptr_not_equal(to, MAP_FAILED);
	pages_stamp(addr, PAGES, NEW);
	expect_words(addr, PAGES, NEW);
	expect_words(to, PAGES, OLD);
	munmap(addr, PAGES * PAGE);
	munmap(to, PAGES * PAGE);
}

/* What another mapping is moved over is gone, too. */
static void moving_over_is_told(void **state)
{
	uint8_t *addr = map_cached();
	uint8_t *from = map_at(NULL, PAGES, 0);

	(void)state;
	pages_stamp(from, PAGES, NEW);
	assert_ptr_equal(mremap(from, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
				addr),
			 addr);
	expect_words(addr, PAGES, NEW);
	munmap(addr, PAGES * PAGE);
}

/* A page behind it is in the way, so it moves. */
static void growing_that_moves_is_told(void **state)
{
	uint8_t *addr = map_at(NULL, PAGES + 1, 0);
	uint8_t *to;

	(void)state;
	mprotect(addr + (size_t)PAGES * PAGE, PAGE, PROT_NONE);
	pages_stamp(addr, PAGES, OLD);
	expect_cached(addr, PAGES, OLD);
	to = mremap(addr, PAGES * PAGE, 2u * PAGES * PAGE, MREMAP_MAYMOVE);
	assert_ptr_not_equal(to, MAP_FAILED);
	assert_ptr_not_equal(to, addr);
	map_at(addr, PAGES, MAP_FIXED_NOREPLACE);
	pages_stamp(addr, PAGES, NEW);
	pages_stamp(to, 2u * PAGES, NEW + 1);
	expect_words(addr, PAGES, NEW);
	expect_words(to, 2u * PAGES, NEW + 1);
	munmap(addr, (PAGES + 1) * PAGE);
	munmap(to, 2u * PAGES * PAGE);
}

static void shrinking_is_told(void **state)
{
	uint8_t *addr = map_cached();

	(void)state;
	assert_ptr_equal(mremap(addr, PAGES * PAGE, 2 * PAGE, 0), addr);
	map_at(addr + 2 * (size_t)PAGE, PAGES - 2, MAP_FIXED_NOREPLACE);
	pages_stamp(addr, PAGES, NEW);
	expect_words(addr, PAGES, NEW);
	munmap(addr, PAGES * PAGE);
}

/* After the discard it is not cached for a while, and then it is again. */
static void check_discard(int advice)
{
	uint8_t *addr = map_cached();

	assert_int_equal(madvise(addr + PAGE, 3 * (size_t)PAGE, advice), 0);
	pages_stamp(addr, PAGES, NEW);
	expect_cached(addr, PAGES, NEW);
	munmap(addr, PAGES * PAGE);
}

static void dontneed_is_told(void **state)
{
	(void)state;
	check_discard(MADV_DONTNEED);
}

static void free_is_told(void **state)
{
	(void)state;
	check_discard(MADV_FREE);
}

/* What is at a second place of shared memory is discarded at the first, and told of the second
 * alone. So it is never cached. */
static void discarding_shared_memory_elsewhere_finds_nothing_cached(void **state)
{
	uint8_t *addr = map_at(NULL, PAGES, MAP_SHARED);
	uint8_t *alias;

	(void)state;
	pages_stamp(addr, PAGES, OLD);
	expect_words(addr, PAGES, OLD);
	alias = mremap(addr, 0, PAGES * PAGE, MREMAP_MAYMOVE);
	assert_ptr_not_equal(alias, MAP_FAILED);
	assert_int_equal(madvise(alias, PAGES * PAGE, MADV_REMOVE), 0);
	pages_stamp(addr, PAGES, NEW);
	expect_words(addr, PAGES, NEW);
	munmap(alias, PAGES * PAGE);
	munmap(addr, PAGES * PAGE);
}

/* The kernel discards after it has told. A registration of that time is not cached. */
static void registering_after_a_discard_is_in_doubt(void **state)
{
	uint8_t *addr = map_cached();

	(void)state;
	madvise(addr, PAGE, MADV_DONTNEED);
	assert_int_equal(rbx_memory_monitor_watch(&cache.listener, addr, PAGES * PAGE), -EAGAIN);
	assert_int_equal(rbx_memory_monitor_watch(&cache.listener, addr + PAGE, PAGE), 0);
	rbx_memory_monitor_unwatch(&cache.listener, addr + PAGE, PAGE);
	munmap(addr, PAGES * PAGE);
}

/* As expect_cached(). */
static void watch_in_the_end(uint8_t *addr, size_t bytes)
{
	int err;

	while ((err = rbx_memory_monitor_watch(&cache.listener, addr, bytes)) == -EAGAIN)
		;
	assert_int_equal(err, 0);
}

/* More ranges than are remembered one by one. */
static void many_discards_are_all_in_doubt(void **state)
{
	uint8_t *addr = map_at(NULL, DISCARDS, 0);

	(void)state;
	watch_in_the_end(addr, DISCARDS * PAGE);
	for (size_t i = 0; i < DISCARDS; i++)
		assert_int_equal(madvise(addr + i * PAGE, PAGE, MADV_DONTNEED), 0);
	assert_int_equal(rbx_memory_monitor_watch(&cache.listener,
						  addr + (DISCARDS - 1) * PAGE, PAGE),
			 -EAGAIN);
	rbx_memory_monitor_unwatch(&cache.listener, addr, DISCARDS * PAGE);
	munmap(addr, DISCARDS * PAGE);
}

static void shrinking_the_heap_is_told(void **state)
{
	uint8_t *before = sbrk(0);
	uint8_t *addr;

	(void)state;
	addr = (uint8_t *)(((uintptr_t)before + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
	assert_int_equal(brk(addr + PAGES * PAGE), 0);
	pages_stamp(addr, PAGES, OLD);
	expect_cached(addr, PAGES, OLD);
	assert_int_equal(brk(addr + PAGE), 0);
	assert_int_equal(brk(addr + PAGES * PAGE), 0);
	pages_stamp(addr, PAGES, NEW);
	expect_words(addr, PAGES, NEW);
	assert_int_equal(brk(before), 0);
}

/* userfaultfd does not watch it, so it is never cached. */
static void detaching_finds_nothing_cached(void **state)
{
	int id = shmget(IPC_PRIVATE, PAGES * PAGE, IPC_CREAT | 0600);
	uint8_t *addr = shmat(id, map_at(NULL, PAGES, 0), SHM_REMAP);

	(void)state;
	shmctl(id, IPC_RMID, NULL);
	assert_ptr_not_equal(addr, (void *)-1);
	pages_stamp(addr, PAGES, OLD);
	expect_words(addr, PAGES, OLD);
	expect_words(addr, PAGES, OLD);
	assert_int_equal(shmdt(addr), 0);
	map_at(addr, PAGES, MAP_FIXED_NOREPLACE);
	pages_stamp(addr, PAGES, NEW);
	expect_words(addr, PAGES, NEW);
	munmap(addr, PAGES * PAGE);
}

/* Two watches of the same pages: the end of one is not the end of the other. */
static void unwatch_leaves_what_others_watch(void **state)
{
	uint8_t *addr = map_at(NULL, PAGES, 0);
	struct rbx_memory_monitor_listener *listener = &cache.listener;
	uint32_t told;

	(void)state;
	watch_in_the_end(addr, 4 * PAGE);
	assert_int_equal(rbx_memory_monitor_watch(listener, addr + 2 * PAGE, 4 * PAGE), 0);
	rbx_memory_monitor_unwatch(listener, addr, 4 * PAGE);
	told = stand_in_told(&cache);
	munmap(addr, 2 * PAGE);
	assert_int_equal(stand_in_told(&cache), told);
	munmap(addr + 2 * PAGE, PAGE);
	munmap(addr + 5 * PAGE, PAGE);
	assert_int_equal(stand_in_told(&cache), told + 2);
	assert_ptr_equal(cache.told_start, addr + 5 * PAGE);
	rbx_memory_monitor_unwatch(listener, addr + 2 * PAGE, 4 * PAGE);
	munmap(addr + 3 * PAGE, 5 * PAGE);
	assert_int_equal(stand_in_told(&cache), told + 2);
}

/* Bytes are watched by their pages. */
static void watch_of_bytes_is_of_pages(void **state)
{
	uint8_t *addr = map_at(NULL, 3, 0);
	uint32_t told = stand_in_told(&cache);

	(void)state;
	watch_in_the_end(addr + PAGE - 1, 2);
	munmap(addr, PAGE);
	munmap(addr + PAGE, PAGE);
	munmap(addr + 2 * PAGE, PAGE);
	assert_int_equal(stand_in_told(&cache), told + 2);
	rbx_memory_monitor_unwatch(&cache.listener, addr + PAGE - 1, 2);
}

static void what_cannot_be_watched_is_refused(void **state)
{
	struct rbx_memory_monitor_listener *listener = &cache.listener;
	int fd = memfd_create("a file", MFD_CLOEXEC);
	uint8_t *addr = map_at(NULL, PAGES, 0);
	uint8_t *file;
	int err;

	(void)state;
	assert_int_equal(ftruncate(fd, PAGE), 0);
	file = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	while ((err = rbx_memory_monitor_watch(listener, file, PAGE)) == -EAGAIN)
		;
	assert_int_equal(err, -EOPNOTSUPP);
	munmap(file, PAGE);
	close(fd);
	munmap(addr + PAGE, PAGE);
	while ((err = rbx_memory_monitor_watch(listener, addr, 3 * PAGE)) == -EAGAIN)
		;
	assert_int_equal(err, -EFAULT);
	assert_int_equal(rbx_memory_monitor_watch(listener, addr, 0), -EFAULT);
	assert_int_equal(rbx_memory_monitor_watch(listener, addr, SIZE_MAX), -EFAULT);
	assert_int_equal(rbx_memory_monitor_watch(listener,
						  (void *)(UINTPTR_MAX - 99), 50), -EFAULT);
	munmap(addr, PAGES * PAGE);
	assert_int_not_equal(rbx_memory_monitor_watch(listener, addr, PAGE), 0);
}

static void more_watches_than_there_is_room_for_are_refused(void **state)
{
	uint8_t *addr = map_at(NULL, 1, 0);

	(void)state;
	for (uint32_t i = 0; i < RBX_MEMORY_MONITOR_WATCHES_MAX; i++)
		watch_in_the_end(addr, PAGE);
	assert_int_equal(rbx_memory_monitor_watch(&cache.listener, addr, PAGE), -ENOSPC);
	for (uint32_t i = 0; i < RBX_MEMORY_MONITOR_WATCHES_MAX; i++)
		rbx_memory_monitor_unwatch(&cache.listener, addr, PAGE);
	munmap(addr, PAGE);
}

/* A child has no monitor: it may unmap without anybody being told, and open one anew. The
 * parent's goes on. */
static void child_has_no_monitor(void **state)
{
	uint8_t *addr = map_cached();
	uint32_t told = stand_in_told(&cache);
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		struct stand_in mine;
		uint64_t word = 0;

		alarm(60);
		munmap(addr, PAGE);
		pages_stamp(addr + PAGE, 1, NEW);
		stand_in_open(&mine, RBX_MEMORY_MONITOR_USERFAULTFD);
		while (!mine.hits_count)
			if (stand_in_read(&mine, addr + PAGE, 1, &word) || word != NEW)
				_exit(1);
		munmap(addr + PAGE, PAGE);
		_exit(stand_in_told(&mine) == 1 ? 0 : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(stand_in_told(&cache), told);
	expect_words(addr, PAGES, OLD);
	munmap(addr, PAGES * PAGE);
	assert_int_equal(stand_in_told(&cache), told + 1);
}

/* The kernel copies pinned pages for the child: both may write, and the device reads what the
 * parent has written, through the registration of before. */
static void fork_leaves_the_pages_to_the_parent(void **state)
{
	uint8_t *addr = map_cached();
	uint32_t hits = stand_in_hits(&cache);
	int ready[2], status;
	char byte;
	pid_t child;

	(void)state;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		pages_stamp(addr, PAGES, NEW + 1);
		_exit(read(ready[0], &byte, 1) == 1 && *(uint64_t *)addr == NEW + 1 ? 0 : 1);
	}
	pages_stamp(addr, PAGES, NEW);
	expect_words(addr, PAGES, NEW);
	assert_int_equal(write(ready[1], "", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	pages_stamp(addr, PAGES, NEW + 2);
	expect_words(addr, PAGES, NEW + 2);
	assert_int_equal(stand_in_hits(&cache), hits + 2);
	close(ready[0]);
	close(ready[1]);
	munmap(addr, PAGES * PAGE);
}

static void program_tells_itself(void **state)
{
	uint8_t *addr = map_cached();

	(void)state;
	assert_int_equal(rbx_memory_changed(addr + 10, 1), 0);
	assert_int_equal(cache.told_start, (uintptr_t)addr + 10);
	assert_int_equal(cache.told_end, (uintptr_t)addr + 11);
	expect_cached(addr, PAGES, OLD);
	assert_int_equal(rbx_memory_changed(addr, 0), -EINVAL);
	assert_int_equal(rbx_memory_changed(addr, SIZE_MAX), -EINVAL);
	munmap(addr, PAGES * PAGE);
}

/* The kernel does not tell of guards (monitor.h), so the program does. */
static void guards_are_told_by_the_program(void **state)
{
	uint8_t *addr = map_cached();

	(void)state;
	if (madvise(addr, PAGE, GUARD_INSTALL)) {
		munmap(addr, PAGES * PAGE);
		skip(); /* before 6.13 */
	}
	assert_int_equal(rbx_memory_changed(addr, PAGE), 0);
	assert_int_equal(madvise(addr, PAGE, GUARD_REMOVE), 0);
	pages_stamp(addr, PAGES, NEW);
	expect_words(addr, PAGES, NEW);
	munmap(addr, PAGES * PAGE);
}

/* No page is touched: the system may have none of them. */
static void huge_pages_are_watched_if_whole(void **state)
{
	struct rbx_memory_monitor_listener *listener = &cache.listener;
	uint8_t *addr = mmap(NULL, 2 * HUGE_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE, -1, 0);
	uint32_t told = stand_in_told(&cache);

	(void)state;
	if (addr == MAP_FAILED)
		skip(); /* the kernel has none of 2 MiB */
	assert_int_equal(rbx_memory_monitor_watch(listener, addr + PAGE, HUGE_BYTES), -EOPNOTSUPP);
	assert_int_equal(rbx_memory_monitor_watch(listener, addr, HUGE_BYTES), 0);
	munmap(addr, 2 * HUGE_BYTES);
	assert_int_equal(stand_in_told(&cache), told + 1);
	rbx_memory_monitor_unwatch(listener, addr, HUGE_BYTES);
}

#define WATCHED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WATCHED(unmap_untold_is_stale),
		WATCHED(unmap_of_all_is_told),
		WATCHED(unmap_of_a_part_is_told),
		WATCHED(mapping_over_is_told),
		WATCHED(moving_is_told),
		WATCHED(moving_the_pages_alone_is_told),
		WATCHED(moving_over_is_told),
		WATCHED(growing_that_moves_is_told),
		WATCHED(shrinking_is_told),
		WATCHED(dontneed_is_told),
		WATCHED(free_is_told),
		WATCHED(discarding_shared_memory_elsewhere_finds_nothing_cached),
		WATCHED(registering_after_a_discard_is_in_doubt),
		WATCHED(many_discards_are_all_in_doubt),
		WATCHED(shrinking_the_heap_is_told),
		WATCHED(detaching_finds_nothing_cached),
		WATCHED(unwatch_leaves_what_others_watch),
		WATCHED(watch_of_bytes_is_of_pages),
		WATCHED(what_cannot_be_watched_is_refused),
		WATCHED(more_watches_than_there_is_room_for_are_refused),
		WATCHED(child_has_no_monitor),
		WATCHED(fork_leaves_the_pages_to_the_parent),
		WATCHED(program_tells_itself),
		WATCHED(guards_are_told_by_the_program),
		WATCHED(huge_pages_are_watched_if_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
