/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * config.c - reads a configuration file: lines `name = value`, in which a name is that of
 * an option without the dashes.
 *
 * The option table of the command says what is allowed. So a file has the same options as
 * the command line, and is refused for the same values.
 *
 * inih parses a line. It would wait for a pipe, cut a long line in two, take an indented
 * line for the rest of the one before, and end a line at a NUL. So this file reads the
 * whole text before, and gives it to inih line by line.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

#define FILE_BYTES_MAX 65536
#define NAME_BYTES_MAX 32 /* of what is repeated in a message */

static const char no_equals[] = "write name = value";

struct reading {
	const struct cli_command *command;
	const char *path;
	const char *rest; /* of the text */
	unsigned int line;
	bool has_equals; /* the line */
	bool *is_given; /* for each option */
	bool has_failed; /* and the user was told */
};

static void fail(struct reading *reading, const char *name, const char *text)
{
	if (!reading->has_failed)
		cli_fail(reading->command, "%s:%u: %s%s%s", reading->path, reading->line,
			 name, *name ? ": " : "", text);
	reading->has_failed = true;
}

/* ---- Lines -----------------------------------------------------------------------*/

/* Gives inih the next line, as fgets() would. */
static char *next_line(char *text, int text_bytes, void *reading_pointer)
{
	struct reading *reading = reading_pointer;
	const char *begin = reading->rest;
	size_t bytes = strcspn(begin, "\n");
	char reason[64];

	if (reading->has_failed || !*begin)
		return NULL;
	reading->line++;
	reading->rest = begin + bytes + (begin[bytes] == '\n');
	while (bytes && isspace((unsigned char)*begin))
		begin++, bytes--;
	if (bytes && strchr("#;", *begin))
		bytes = 0;
	if (bytes && *begin == '[') {
		fail(reading, "", "there are no sections; leave [...] out");
		return NULL;
	}
	if (bytes + 1 >= (size_t)text_bytes) {
		snprintf(reason, sizeof(reason), "the line is longer than %d characters",
			 text_bytes - 2);
		fail(reading, "", reason);
		return NULL;
	}
	reading->has_equals = memchr(begin, '=', bytes) != NULL;
	memcpy(text, begin, bytes);
	memcpy(text + bytes, "\n", sizeof("\n"));
	return text;
}

/* ---- Options -----------------------------------------------------------------------*/

/* Words have no dashes, and a file does not name another one. */
static const struct cli_option *option_find(const struct cli_command *command,
					    const char *name)
{
	for (size_t i = 0; i < command->options_count; i++) {
		const struct cli_option *option = &command->options[i];

		if (!strcmp(option->name, name) && option->place != CLI_WORD &&
		    option->field != command->config)
			return option;
	}
	return NULL;
}

static const char *option_name(const void *of, size_t index)
{
	const struct cli_command *command = of;

	return index < command->options_count ? command->options[index].name : NULL;
}

/* What does not look like a name is not repeated: the file may be a secret. */
static void unknown_name(struct reading *reading, const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz-_";
	bool is_shown = name[strspn(name, letters)] == '\0' && strlen(name) <= NAME_BYTES_MAX;
	const char *nearest = is_shown ? cli_nearest(name, option_name, reading->command) : NULL;
	char text[128];

	if (!reading->has_equals)
		snprintf(text, sizeof(text), "%s", no_equals);
	else if (nearest && option_find(reading->command, nearest))
		snprintf(text, sizeof(text), "there is no such option; did you mean %s?",
			 nearest);
	else
		snprintf(text, sizeof(text), "there is no such option; see rdmabox %s --help",
			 reading->command->name);
	fail(reading, is_shown && reading->has_equals ? name : "", text);
}

static int set_flag(const struct cli_option *option, const char *value, char *reason,
		    size_t reason_bytes)
{
	bool is_on = !strcmp(value, "yes") || !strcmp(value, "true");

	if (!is_on && strcmp(value, "no") && strcmp(value, "false")) {
		snprintf(reason, reason_bytes, "give yes or no");
		return -EINVAL;
	}
	*(uint32_t *)option->field = is_on;
	return 0;
}

static int set(const struct cli_option *option, const char *value, char *reason,
	       size_t reason_bytes)
{
	return option->value ? option->set(option, value, reason, reason_bytes) :
			       set_flag(option, value, reason, reason_bytes);
}

/* Called by inih. After an error next_line() gives no more. */
static int take(void *reading_pointer, const char *section, const char *name,
		const char *value)
{
	struct reading *reading = reading_pointer;
	const struct cli_option *option;
	char reason[256], text[512];
	bool *is_given;

	(void)section;
	option = option_find(reading->command, name);
	if (!option) {
		unknown_name(reading, name);
		return 1;
	}
	is_given = &reading->is_given[option - reading->command->options];
	if (*is_given && !option->is_repeatable) {
		fail(reading, name, "it was given above");
		return 1;
	}
	*is_given = true;
	if (*value == '"') {
		fail(reading, name, "leave the quotes out");
		return 1;
	}
	if (set(option, value, reason, sizeof(reason))) {
		snprintf(text, sizeof(text), "'%.200s' is not accepted; %s%s", value, reason,
			 strchr(value, '#') ? "; a comment needs a line of its own" : "");
		fail(reading, name, text);
	}
	return 1;
}

/* ---- The file ------------------------------------------------------------------------*/

/* All of the file, with a NUL behind it, into text of FILE_BYTES_MAX + 1. NULL, or why not. */
static const char *read_text(int fd, char *text)
{
	struct stat status;
	size_t have = 0;
	ssize_t n = 1;

	if (fstat(fd, &status))
		return strerror(errno);
	if (!S_ISREG(status.st_mode))
		return "it is no regular file";
	while (n && have <= FILE_BYTES_MAX) {
		n = read(fd, text + have, FILE_BYTES_MAX + 1 - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return strerror(errno);
		have += (size_t)n;
	}
	if (have > FILE_BYTES_MAX)
		return "it is longer than 64 KiB";
	text[have] = '\0';
	return strlen(text) < have ? "it is no text: it has a byte of zero" : NULL;
}

static const char byte_order_mark[] = "\xef\xbb\xbf"; /* some editors begin with it */

static void read_lines(struct reading *reading, const char *text)
{
	int line;

	reading->rest = strncmp(text, byte_order_mark, 3) ? text : text + 3;
	line = ini_parse_stream(next_line, reading, take, reading);
	if (line > 0) {
		reading->line = (unsigned int)line;
		fail(reading, "", no_equals);
	} else if (line < 0) {
		fail(reading, "", "no memory to read it");
	}
}

static void read_file(struct reading *reading, int fd)
{
	char *text = malloc(FILE_BYTES_MAX + 1);
	const char *why;

	reading->is_given = calloc(reading->command->options_count,
				   sizeof(*reading->is_given));
	why = text && reading->is_given ? read_text(fd, text) : "there is no memory";
	if (why) {
		cli_fail(reading->command, "cannot read %s: %s", reading->path, why);
		reading->has_failed = true;
	} else {
		read_lines(reading, text);
	}
	free(reading->is_given);
	free(text);
}

int cli_config_read(const struct cli_command *command, const char *path)
{
	struct reading reading = { .command = command, .path = path };
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0) {
		cli_fail(command, "cannot open %s: %s", path, strerror(errno));
		return -EINVAL;
	}
	read_file(&reading, fd);
	close(fd);
	return reading.has_failed ? -EINVAL : 0;
}
