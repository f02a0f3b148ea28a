/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* page_swap_test.c - what the kernel is asked for, with a swapon() of our own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/page/page.h"

static char asked_path[64];
static int asked_flags;

int swapon(const char *path, int flags)
{
	strncpy(asked_path, path, sizeof(asked_path) - 1);
	asked_flags = flags;
	return 0;
}

static const struct cli_command command = { .name = "page attach" };

static int priority_of(int flags)
{
	assert_true(flags & SWAP_FLAG_PREFER);
	return (flags & SWAP_FLAG_PRIO_MASK) >> SWAP_FLAG_PRIO_SHIFT;
}

static void swap_has_the_priority_that_is_asked_for(void **state)
{
	(void)state;
	assert_int_equal(page_swap_on(&command, "rdmabox7",
				      PAGE_SWAP_PRIORITY_MAX), 0);
	assert_string_equal(asked_path, "/dev/rdmabox7");
	assert_int_equal(priority_of(asked_flags), 32767);
	assert_true(asked_flags & SWAP_FLAG_DISCARD);
	assert_int_equal(page_swap_on(&command, "rdmabox7", 0), 0);
	assert_int_equal(priority_of(asked_flags), 0);
}

/* A mkswap that succeeds, whatever the device. */
static int make_mkswap(void **state)
{
	static char dir[] = "/tmp/rdmabox-page-swap.XXXXXX";
	char path[sizeof(dir) + 16];

	*state = mkdtemp(dir);
	snprintf(path, sizeof(path), "%s/mkswap", dir);
	return !*state || symlink("/bin/true", path) || setenv("PATH", dir, 1);
}

static int remove_mkswap(void **state)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/mkswap", (char *)*state);
	return unlink(path) || rmdir(*state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(swap_has_the_priority_that_is_asked_for),
	};

	return cmocka_run_group_tests(tests, make_mkswap, remove_mkswap);
}
