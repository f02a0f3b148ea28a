/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mappings_test.c - what is said of mappings, on this kernel and as an older one is asked.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/monitor/mappings.h"
#include "tests/lib/monitor/kernel.h"

#define PAGE 4096u
#define MANY 2000u /* of several reads of the text */
#define HUGE_BYTES (2u << 20)

static int setup(void **state)
{
	(void)state;
	return rbx_mappings_open();
}

static int setup_older(void **state)
{
	kernel.has_no_query = true;
	return setup(state);
}

static int teardown(void **state)
{
	(void)state;
	rbx_mappings_close();
	memset(&kernel, 0, sizeof(kernel));
	return 0;
}

static uint8_t *map(size_t bytes, int flags, int fd)
{
	uint8_t *addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

	assert_ptr_not_equal(addr, MAP_FAILED);
	return addr;
}

static int check(const uint8_t *addr, size_t bytes, uint32_t *count)
{
	return rbx_mappings_check((uintptr_t)addr, (uintptr_t)addr + bytes, count);
}

/* Every second page is a mapping of its own. Then one of the last is gone. */
static void many_mappings_are_all_looked_at(void **state)
{
	uint8_t *addr = map(MANY * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	uint32_t count;

	(void)state;
	for (size_t i = 1; i < MANY; i += 2)
		assert_int_equal(mprotect(addr + i * PAGE, PAGE, PROT_READ), 0);
	assert_int_equal(check(addr, MANY * PAGE, &count), 0);
	assert_int_equal(count, MANY);
	assert_int_equal(check(addr + PAGE, PAGE, &count), 0);
	assert_int_equal(count, 1);
	munmap(addr + (MANY - 2) * PAGE, PAGE);
	assert_int_equal(check(addr, MANY * PAGE, &count), -EFAULT);
	assert_int_equal(check(addr, (MANY - 2) * PAGE, &count), 0);
	munmap(addr, MANY * PAGE);
	assert_int_equal(check(addr, PAGE, &count), -EFAULT);
}

static void range_behind_all_mappings_is_a_hole(void **state)
{
	uint32_t count;

	(void)state;
	assert_int_equal(rbx_mappings_check(UINTPTR_MAX - 2 * PAGE + 1, UINTPTR_MAX - PAGE + 1,
					    &count),
			 -EFAULT);
}

static void files_and_shared_memory_are_refused(void **state)
{
	int memory = memfd_create("a file", MFD_CLOEXEC);
	uint8_t *shared = map(PAGE, MAP_SHARED | MAP_ANONYMOUS, -1);
	uint8_t *file;
	uint32_t count;

	(void)state;
	assert_int_equal(ftruncate(memory, PAGE), 0);
	assert_int_equal(check(shared, PAGE, &count), -EOPNOTSUPP);
	file = map(PAGE, MAP_SHARED, memory);
	assert_int_equal(check(file, PAGE, &count), -EOPNOTSUPP);
	munmap(file, PAGE);
	file = map(PAGE, MAP_PRIVATE, memory);
	assert_int_equal(check(file, PAGE, &count), -EOPNOTSUPP);
	munmap(file, PAGE);
	munmap(shared, PAGE);
	close(memory);
}

/* A file of a name that begins, or ends, as that of huge pages. */
static void check_named(const char *directory, const char *name)
{
	char path[128];
	uint8_t *addr;
	uint32_t count;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, PAGE), 0);
	addr = map(PAGE, MAP_PRIVATE, fd);
	unlink(path);
	assert_int_equal(check(addr, PAGE, &count), -EOPNOTSUPP);
	munmap(addr, PAGE);
	close(fd);
}

static void files_of_similar_names_are_refused(void **state)
{
	char directory[] = "/tmp/mappings-XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(directory));
	check_named(directory, "anon_hugepage");
	check_named(directory, "anon_hugepage (deleted) that is longer");
	check_named(directory, "a");
	rmdir(directory);
}

/* Reserves no page: nothing is written to. Private huge pages may be cached. */
static void private_huge_pages_are_no_file(void **state)
{
	int flags = MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE;
	uint8_t *addr = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | flags, -1, 0);
	uint32_t count;

	(void)state;
	if (addr == MAP_FAILED)
		skip(); /* the kernel has none of 2 MiB */
	assert_int_equal(check(addr, HUGE_BYTES, &count), 0);
	munmap(addr, HUGE_BYTES);
	addr = map(HUGE_BYTES, MAP_SHARED | flags, -1);
	assert_int_equal(check(addr, HUGE_BYTES, &count), -EOPNOTSUPP);
	munmap(addr, HUGE_BYTES);
}

/* One mapping at a time is found by a query alone. */
static void mapping_of_an_address_is_found(void **state)
{
	uint8_t *addr = map(3 * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct rbx_mapping mapping;

	(void)state;
	mprotect(addr, PAGE, PROT_NONE);
	mprotect(addr + 2 * PAGE, PAGE, PROT_NONE);
	assert_int_equal(rbx_mappings_find((uintptr_t)addr + 2 * PAGE - 1, &mapping),
			 kernel_has_query());
	if (kernel_has_query()) {
		assert_int_equal(mapping.start, (uintptr_t)addr + PAGE);
		assert_int_equal(mapping.end, (uintptr_t)addr + 2 * PAGE);
	}
	munmap(addr + PAGE, PAGE);
	assert_false(rbx_mappings_find((uintptr_t)addr + PAGE, &mapping));
	munmap(addr, 3 * PAGE);
}

#define BOTH(test)                                                                  \
	cmocka_unit_test_setup_teardown(test, setup, teardown),                     \
	{                                                                           \
		#test " on an older kernel", test, setup_older, teardown, NULL      \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(many_mappings_are_all_looked_at),
		BOTH(range_behind_all_mappings_is_a_hole),
		BOTH(files_and_shared_memory_are_refused),
		BOTH(files_of_similar_names_are_refused),
		BOTH(private_huge_pages_are_no_file),
		BOTH(mapping_of_an_address_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
