/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mappings_text.c - reads the mappings from /proc/thread-self/maps, line by line.
 *
 * That of the thread: /proc/self/maps is empty once the main thread has ended. Read without
 * the C library's streams, as these allocate. Mappings may change between two reads: the
 * kernel goes on behind the last line, so no mapping that stays is left out.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/monitor/mappings.h"

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

/* "start-end rwxp offset device inode   path" */
static void parse(const char *line, struct rbx_mapping *mapping)
{
	uintptr_t inode;

	line = take_number(line, 16, &mapping->start);
	line = take_number(line + (*line == '-'), 16, &mapping->end);
	line = skip_word(line);
	mapping->is_shared = strnlen(line, 4) == 4 && line[3] == 's';
	for (int word = 0; word < 3; word++)
		line = skip_word(line);
	line = take_number(line, 10, &inode);
	mapping->has_file = inode != 0 &&
			    strcmp(line + strspn(line, " "), RBX_MAPPINGS_HUGE_PAGES) != 0;
}

/* The next line, with its end cut off; NULL: it is not whole. */
static char *take_line(struct rbx_mappings_walk *walk)
{
	char *line = walk->text + walk->used_bytes;
	char *newline = memchr(line, '\n', walk->text_bytes - walk->used_bytes);

	if (!newline)
		return NULL;
	*newline = '\0';
	walk->used_bytes = (size_t)(newline + 1 - walk->text);
	return line;
}

static int read_more(struct rbx_mappings_walk *walk)
{
	ssize_t more;

	walk->text_bytes -= walk->used_bytes;
	memmove(walk->text, walk->text + walk->used_bytes, walk->text_bytes);
	walk->used_bytes = 0;
	more = read(walk->text_fd, walk->text + walk->text_bytes,
		    sizeof(walk->text) - walk->text_bytes);
	if (more <= 0)
		return more < 0 ? -errno : -ENOENT;
	walk->text_bytes += (size_t)more;
	return 0;
}

int rbx_mappings_text_open(void)
{
	int fd = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int rbx_mappings_text_next(struct rbx_mappings_walk *walk, uintptr_t at,
			   struct rbx_mapping *mapping)
{
	for (;;) {
		const char *line = take_line(walk);
		int err = line ? 0 : read_more(walk);

		if (err)
			return err;
		if (!line)
			continue;
		parse(line, mapping);
		if (mapping->end > at)
			return 0;
	}
}
