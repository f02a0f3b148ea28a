/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mappings.c - tells what is mapped in a range: /proc/self/maps.
 *
 * userfaultfd accepts a range with a hole, and mappings of files in memory (memfd, tmpfs).
 * Neither may be cached. Nothing would tell of what is mapped into the hole later, nor of
 * ftruncate() and fallocate(): these change the file, not the mapping.
 *
 * Read without the C library's streams, as these allocate. The kernel writes a line for each
 * mapping before the range: a program with thousands of mappings pays a millisecond. Since
 * 6.11 there is PROCMAP_QUERY for one mapping alone; it is not used yet.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/monitor/internal.h"

/* A line has a path at its end, of PATH_MAX bytes at most. */
#define BUFFER_BYTES 8192u

struct mapping {
	uintptr_t start;
	uintptr_t end;
	bool has_file;
};

/* The lock of the monitor guards it. */
static char buffer[BUFFER_BYTES];

static const char *take_number(const char *text, unsigned int base, uintptr_t *number)
{
	*number = 0;
	for (;; text++) {
		unsigned int digit = *text >= 'a' ? (unsigned int)(*text - 'a') + 10 :
						    (unsigned int)(*text - '0');

		if (*text < '0' || digit >= base)
			return text;
		*number = *number * base + digit;
	}
}

/* Goes behind the next space. */
static const char *skip_word(const char *text)
{
	while (*text != ' ' && *text != '\0')
		text++;
	return *text == ' ' ? text + 1 : text;
}

/* Shared memory without a name, and huge pages, are files to the kernel, but no program can
 * open them to change their length. */
static bool is_unnamed(const char *path)
{
	return strcmp(path, "/dev/zero (deleted)") == 0 ||
	       strcmp(path, "/anon_hugepage (deleted)") == 0;
}

/* "start-end rwxp offset device inode   path" */
static void parse(const char *line, struct mapping *mapping)
{
	uintptr_t inode;

	line = take_number(line, 16, &mapping->start);
	line = take_number(line + (*line == '-'), 16, &mapping->end);
	for (int word = 0; word < 4; word++)
		line = skip_word(line);
	line = take_number(line, 10, &inode);
	mapping->has_file = inode != 0 && !is_unnamed(line + strspn(line, " "));
}

struct search {
	uintptr_t at; /* all before it is as it should be */
	uintptr_t end;
	int err;
};

/* Returns whether the search is over. The lines are sorted by their addresses. */
static bool look_at(struct search *search, const char *line)
{
	struct mapping mapping;

	parse(line, &mapping);
	if (mapping.end <= search->at)
		return false;
	if (mapping.start > search->at)
		search->err = -EFAULT;
	else if (mapping.has_file)
		search->err = -EOPNOTSUPP;
	search->at = mapping.end;
	return search->err || search->at >= search->end;
}

/* Looks at the whole lines of what was read. Returns how many bytes these are. */
static size_t look_at_lines(struct search *search, size_t bytes, bool *is_over)
{
	char *line = buffer;
	char *newline;

	while (!*is_over && (newline = memchr(line, '\n', bytes - (size_t)(line - buffer)))) {
		*newline = '\0';
		*is_over = look_at(search, line);
		line = newline + 1;
	}
	return (size_t)(line - buffer);
}

static int search_all(int fd, struct search *search)
{
	size_t bytes = 0;
	bool is_over = false;

	for (;;) {
		ssize_t more = read(fd, buffer + bytes, sizeof(buffer) - bytes);
		size_t used;

		if (more < 0)
			return -errno;
		if (more == 0)
			return -EFAULT; /* the last mapping ends before the range does */
		bytes += (size_t)more;
		used = look_at_lines(search, bytes, &is_over);
		if (is_over)
			return search->err;
		bytes -= used;
		memmove(buffer, buffer + used, bytes);
	}
}

int rbx_mappings_check(uintptr_t start, uintptr_t end)
{
	struct search search = { .at = start, .end = end };
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = search_all(fd, &search);
	close(fd);
	return err;
}
