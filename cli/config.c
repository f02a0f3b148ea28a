/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads a configuration file: lines `name = value`, in which the name is that of an
 * option without the dashes. The command's table says what is allowed. So a file knows
 * the same options as the command line, and the same values are refused.
 *
 * inih reads the lines. This file counts them, since inih does not report the line of a
 * value that a table refuses. It also refuses a line that is too long, which inih would
 * cut in two.
 */
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

struct reading {
	const struct cli_command *command;
	const char *path;
	FILE *file;
	unsigned int line;
	bool *is_given; /* for each option */
	bool has_failed; /* an error was found and printed */
};

static void fail(struct reading *reading, const char *name, const char *text)
{
	if (!reading->has_failed)
		cli_fail(reading->command, "%s:%u: %s%s%s", reading->path, reading->line,
			 name, *name ? ": " : "", text);
	reading->has_failed = true;
}

static char *read_line(char *text, int text_bytes, void *reading_pointer)
{
	struct reading *reading = reading_pointer;
	char *line = reading->has_failed ? NULL : fgets(text, text_bytes, reading->file);

	if (!line)
		return NULL;
	reading->line++;
	if (!strchr(line, '\n') && strlen(line) + 1 == (size_t)text_bytes) {
		fail(reading, "", "the line is too long");
		return NULL;
	}
	return line;
}

/* The options that a file may have: not words without dashes, and not another file. */
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

static void unknown_name(struct reading *reading, const char *name)
{
	const char *nearest = cli_nearest(name, option_name, reading->command);
	char text[128];

	if (nearest && option_find(reading->command, nearest))
		snprintf(text, sizeof(text), "there is no such option; did you mean %s?",
			 nearest);
	else
		snprintf(text, sizeof(text), "there is no such option; see rdmabox %s --help",
			 reading->command->name);
	fail(reading, name, text);
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

/* The callback of inih. Errors make read_line() stop. */
static int take(void *reading_pointer, const char *section, const char *name,
		const char *value)
{
	struct reading *reading = reading_pointer;
	const struct cli_option *option;
	char reason[256], text[512];
	bool *is_given;

	if (*section) {
		fail(reading, section, "there are no sections; leave [...] out");
		return 1;
	}
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
		snprintf(text, sizeof(text), "'%.200s' is not accepted; %s", value, reason);
		fail(reading, name, text);
	}
	return 1;
}

static void read_all(struct reading *reading)
{
	int line = ini_parse_stream(read_line, reading, take, reading);

	if (line > 0 && !reading->has_failed) {
		reading->line = (unsigned int)line;
		fail(reading, "", "give name = value");
	} else if (line < 0 || ferror(reading->file)) {
		fail(reading, "", "it cannot be read");
	}
}

int cli_config_read(const struct cli_command *command, const char *path)
{
	struct reading reading = { .command = command, .path = path };

	reading.file = fopen(path, "re");
	if (!reading.file) {
		cli_fail(command, "cannot open %s: %s", path, strerror(errno));
		return -EINVAL;
	}
	reading.is_given = calloc(command->options_count, sizeof(*reading.is_given));
	if (reading.is_given)
		read_all(&reading);
	else
		fail(&reading, "", "no memory to read it");
	free(reading.is_given);
	fclose(reading.file);
	return reading.has_failed ? -EINVAL : 0;
}
