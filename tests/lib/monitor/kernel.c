/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* kernel.c - see kernel.h. Defines two calls of the C library, which the monitor uses. */
#include "tests/lib/monitor/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

#include <cmocka.h>

#include "core/port.h"

/* Of PROCMAP_QUERY: the letter and the number. */
#define IS_QUERY(request) (_IOC_TYPE(request) == 'f' && _IOC_NR(request) == 17)
#define MAPS "/proc/thread-self/maps"

struct kernel kernel;

static void (*call_before_look)(void); /* atomic */

void kernel_call_before_look(void (*before_look)(void))
{
	RBX_STORE_RELEASE(&call_before_look, before_look);
}

bool kernel_has_called(void)
{
	return !RBX_LOAD_ACQUIRE(&call_before_look);
}

static void call_back(void)
{
	void (*before_look)(void) = RBX_EXCHANGE(&call_before_look, NULL);

	if (before_look)
		before_look();
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (IS_QUERY(request) && kernel.has_no_query) {
		errno = ENOTTY;
		return -1;
	}
	if (request == UFFDIO_WRITEPROTECT && kernel.counts_nothing) {
		errno = EINVAL;
		return -1;
	}
	if (IS_QUERY(request))
		call_back();
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

int open(const char *path, int flags, ...)
{
	va_list args;
	unsigned int mode = 0;

	va_start(args, flags);
	if (flags & O_CREAT)
		mode = va_arg(args, unsigned int);
	va_end(args);
	if (strcmp(path, MAPS) == 0) {
		if (kernel.has_no_proc) {
			errno = ENOENT;
			return -1;
		}
		call_back();
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

bool kernel_has_query(void)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	bool has_it;

	assert_true(fd >= 0);
	/* Without an argument it fails all the same. */
	has_it = ioctl(fd, _IOWR('f', 17, char[104]), NULL) == 0 || errno != ENOTTY;
	close(fd);
	return has_it;
}

/* Of the mapping that has the page, or of any. */
static bool find_watched(uintptr_t page, bool is_any)
{
	FILE *file = fopen("/proc/thread-self/smaps", "r");
	char line[4400];
	bool is_it = false, found = false;

	assert_non_null(file);
	while (!found && fgets(line, sizeof(line), file)) {
		unsigned long start, end;

		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			is_it = is_any || (start <= page && page < end);
		else if (is_it && strncmp(line, "VmFlags:", 8) == 0)
			found = strstr(line, " uw") != NULL;
	}
	fclose(file);
	return found;
}

bool kernel_watches(const void *page)
{
	return find_watched((uintptr_t)page, false);
}

bool kernel_watches_some(void)
{
	return find_watched(0, true);
}

void kernel_skip_under_tsan(void)
{
#ifdef __SANITIZE_THREAD__
	skip();
#endif
}
