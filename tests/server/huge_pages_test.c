/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * huge_pages_test.c - the memory of a slab, on huge pages and without.
 *
 * For the first the test has the system set some apart, a few, and gives them back at
 * the end; without root, or where the system has none to spare, those tests are skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "server/huge_pages.h"
#include "server/state.h"

#define POOL "/proc/sys/vm/nr_hugepages"
#define PAGES 4u
#define SLAB_BYTES (2 * (uint64_t)RBX_HUGE_PAGE_BYTES)

static long pages_before = -1; /* of the pool, if we have changed it */

static long pool_read(void)
{
	FILE *file = fopen(POOL, "re");
	long count = -1;

	if (file) {
		if (fscanf(file, "%ld", &count) != 1)
			count = -1;
		fclose(file);
	}
	return count;
}

static void pool_write(long count)
{
	FILE *file = fopen(POOL, "we");

	if (file) {
		fprintf(file, "%ld\n", count);
		fclose(file);
	}
}

static void pool_restore(void)
{
	if (pages_before >= 0)
		pool_write(pages_before);
	pages_before = -1;
}

/* Whether there are PAGES that nobody else has. */
static bool pool_grow(void)
{
	long count = pool_read();

	if (count < 0 || access(POOL, W_OK))
		return false;
	if (pages_before < 0)
		pages_before = count;
	pool_write(pages_before + PAGES);
	return rbx_huge_pages_free() >= PAGES;
}

/* ---- A server that has no device ------------------------------------------------*/

static struct rbx_mr the_mr;

static int registered(struct rbx_device *device, const struct rbx_mr_init *inits,
		      size_t count, struct rbx_mr **mrs, char *error)
{
	(void)device;
	(void)error;
	assert_int_equal(count, 1);
	assert_int_equal(inits->length_bytes % RBX_HUGE_PAGE_BYTES,
			 inits->length_bytes < RBX_HUGE_PAGE_BYTES ?
				 inits->length_bytes :
				 0);
	mrs[0] = &the_mr;
	return 0;
}

static void deregistered(struct rbx_device *device, struct rbx_mr **mrs,
			 size_t count)
{
	(void)device;
	assert_int_equal(count, 1);
	assert_ptr_equal(mrs[0], &the_mr);
}

static const struct rbx_fabric_ops ops = {
	.register_memory = registered,
	.deregister_memory = deregistered,
};

static struct rbx_server *server_make(uint64_t slab_bytes, uint32_t small_pages)
{
	struct rbx_server *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->fabric.ops = &ops;
	s->options.slab_bytes = slab_bytes;
	s->options.small_pages = small_pages;
	return s;
}

static void slab_prepare(const struct rbx_server *s, struct rbx_slab_memory *slab)
{
	int err;

	slab->lent_bytes = s->options.slab_bytes;
	while ((err = rbx_slab_prepare_step(s, slab)) == 1)
		;
	assert_int_equal(err, 0);
}

static bool is_huge(const struct rbx_slab_memory *slab)
{
	struct statfs where;

	assert_int_equal(fstatfs(slab->fd, &where), 0);
	return where.f_type == HUGETLBFS_MAGIC;
}

static void slab_end(const struct rbx_server *s, struct rbx_slab_memory *slab)
{
	while (rbx_slab_end_step(s, slab))
		;
	assert_null(slab->addr);
}

/* ---- Tests ----------------------------------------------------------------------*/

static void slab_on_huge_pages_is_empty_and_gives_them_back(void **state)
{
	struct rbx_server *s = server_make(SLAB_BYTES, 0);
	struct rbx_slab_memory slab = { .fd = -1 };
	uint64_t free_count;
	uint8_t *of_peer;
	int round;

	(void)state;
	if (!pool_grow()) {
		pool_restore();
		free(s);
		skip();
	}
	for (round = 0; round < 3; round++) {
		free_count = rbx_huge_pages_free();
		slab_prepare(s, &slab);
		assert_true(is_huge(&slab));
		assert_int_equal(rbx_huge_pages_free(), free_count - 2);
		/* A client on this host has it mapped, and keeps it so. */
		of_peer = mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE,
			       MAP_SHARED, slab.fd, 0);
		assert_true(of_peer != MAP_FAILED);
		for (uint64_t i = 0; i < SLAB_BYTES; i += 4096) {
			assert_int_equal(of_peer[i], 0);
			of_peer[i] = 1;
		}
		slab_end(s, &slab);
		assert_int_equal(rbx_huge_pages_free(), free_count);
		munmap(of_peer, SLAB_BYTES);
	}
	pool_restore();
	free(s);
}

/* There are huge pages, and a slab does not want them. */
static void expect_small_pages(uint64_t slab_bytes, uint32_t told_so)
{
	struct rbx_server *s = server_make(slab_bytes, told_so);
	struct rbx_slab_memory slab = { .fd = -1 };

	(void)pool_grow();
	slab_prepare(s, &slab);
	assert_false(is_huge(&slab));
	slab_end(s, &slab);
	pool_restore();
	free(s);
}

static void slab_on_small_pages_if_told_so(void **state)
{
	(void)state;
	expect_small_pages(SLAB_BYTES, 1);
}

static void slab_of_no_whole_pages_on_small_ones(void **state)
{
	(void)state;
	expect_small_pages(RBX_HUGE_PAGE_BYTES / 2, 0);
}

/* There may be some for one slab, or none: the next is made as well. */
static void slab_beyond_the_huge_pages_on_small_ones(void **state)
{
	struct rbx_slab_memory slabs[2] = { { .fd = -1 }, { .fd = -1 } };
	struct rbx_server *s = server_make(SLAB_BYTES, 0);

	(void)state;
	if (pool_grow())
		s->options.slab_bytes =
			rbx_huge_pages_free() * RBX_HUGE_PAGE_BYTES;
	slab_prepare(s, &slabs[0]);
	slab_prepare(s, &slabs[1]);
	assert_false(is_huge(&slabs[1]));
	slab_end(s, &slabs[0]);
	slab_end(s, &slabs[1]);
	pool_restore();
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slab_on_huge_pages_is_empty_and_gives_them_back),
		cmocka_unit_test(slab_on_small_pages_if_told_so),
		cmocka_unit_test(slab_of_no_whole_pages_on_small_ones),
		cmocka_unit_test(slab_beyond_the_huge_pages_on_small_ones),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	pool_restore(); /* if a test has failed in the middle */
	return failed;
}
