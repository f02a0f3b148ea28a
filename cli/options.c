/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parses the command line: takes a table of options, and fills in checked fields.
 *
 * getopt_long() finds the option. The setter of its table entry checks the value and
 * stores it (setters.c). A word that is not an option goes to the next entry of the table
 * that takes one. The command itself checks options against each other.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

/* Above any character, so that an option cannot be taken for '?' or ':'. */
#define OPTION_VALUE_BASE 256
/* Of a line about what is wrong: a path, and what to do. What is longer is cut. */
#define FAIL_TEXT_BYTES 8192

bool cli_fail_may_wait = true;

bool cli_stderr_would_wait(void)
{
	struct pollfd err = { .fd = STDERR_FILENO, .events = POLLOUT };

	return poll(&err, 1, 0) != 1 || !(err.revents & POLLOUT);
}

int cli_fail(const struct cli_command *command, const char *format, ...)
{
	char text[FAIL_TEXT_BYTES];
	va_list args;

	if (!cli_fail_may_wait && cli_stderr_would_wait())
		return CLI_EXIT_USAGE;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* An argument may hold anything, also what is a command to the terminal. */
	for (char *c = text; *c; c++)
		if ((*c >= 0 && *c < ' ') || *c == 0x7f)
			*c = '?';
	fprintf(stderr, "rdmabox %s: %s\n", command->name, text);
	return CLI_EXIT_USAGE;
}

/* For getopt_long(), with --help and an end; NULL: no memory. */
static struct option *make_long_options(const struct cli_command *command)
{
	struct option *long_options =
		calloc(command->options_count + 2, sizeof(*long_options));
	size_t count = 0;

	if (!long_options)
		return NULL;
	for (size_t i = 0; i < command->options_count; i++) {
		if (command->options[i].place == CLI_WORD)
			continue;
		long_options[count++] = (struct option){
			.name = command->options[i].name,
			.has_arg = command->options[i].value ?
					   required_argument :
					   no_argument,
			.val = OPTION_VALUE_BASE + i,
		};
	}
	long_options[count] = (struct option){ "help", no_argument, NULL, 'h' };
	return long_options;
}

/* dashes: "--", or "" if it was given as a word. */
static int parse_option(const struct cli_command *command, const struct cli_option *option,
			const char *dashes, const char *text)
{
	char reason[256];

	if (!option->set(option, text, reason, sizeof(reason)))
		return 0;
	cli_fail(command, "%s%s '%s' is not accepted; %s", dashes, option->name, text, reason);
	return -EINVAL;
}

/* ---- Errors -------------------------------------------------------------------*/

static const char *option_name(const void *of, size_t index)
{
	const struct cli_command *command = of;

	return index < command->options_count ? command->options[index].name :
	       index == command->options_count ? "help" :
						 NULL;
}

/* A pool is a list of servers, too, and other commands call it that. */
static const char *other_word(const struct cli_command *command, const char *name)
{
	if (strcmp(name, "servers") && strcmp(name, "server"))
		return NULL;
	for (size_t i = 0; i < command->options_count; i++)
		if (!strcmp(command->options[i].name, "pool"))
			return "pool";
	return NULL;
}

static void unknown_option(const struct cli_command *command, const char *text)
{
	char name[64];
	const char *nearest;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, "="), text);
	nearest = other_word(command, name + strspn(name, "-"));
	if (!nearest)
		nearest = cli_nearest(name + strspn(name, "-"), option_name, command);
	if (nearest)
		cli_fail(command, "unknown option %s; did you mean --%s? See rdmabox %s --help",
			 text, nearest, command->name);
	else
		cli_fail(command, "unknown option %s; see rdmabox %s --help", text,
			 command->name);
}

/* getopt_long() knows no option for this word. */
static int refuse(const struct cli_command *command, int found, const char *word)
{
	const char *name = "";

	if (optopt >= OPTION_VALUE_BASE)
		name = command->options[optopt - OPTION_VALUE_BASE].name;
	if (found == ':')
		cli_fail(command, "--%s needs a value; see rdmabox %s --help",
			 name, command->name);
	else if (*name)
		cli_fail(command, "--%s takes no value; leave it away", name);
	else
		unknown_option(command, word);
	return -EINVAL;
}

/* The next entry, from *at on, that takes a word; NULL: there is none. */
static const struct cli_option *next_word_option(const struct cli_command *command,
						 size_t *at)
{
	for (; *at < command->options_count; (*at)++) {
		const struct cli_option *option = &command->options[*at];

		if (option->place == CLI_OPTION)
			continue;
		if (!option->is_repeatable)
			(*at)++;
		return option;
	}
	return NULL;
}

static int parse_word(const struct cli_command *command, size_t *at, const char *word)
{
	const struct cli_option *option = next_word_option(command, at);

	if (option)
		return parse_option(command, option, "", word);
	cli_fail(command, "unexpected '%s'; see rdmabox %s --help", word,
		 command->name);
	return -EINVAL;
}

static void prepare(const struct cli_command *command)
{
	if (command->prepare)
		command->prepare();
}

static int parse_line(const struct cli_command *command,
		      const struct option *long_options, int argc, char **argv)
{
	size_t word_at = 0;
	int found, err;

	opterr = 0;
	optind = 0; /* start again: `help` parses the line of another command after its own */
	for (;;) {
		int at = optind ? optind : 1; /* the word that getopt reads */

		found = getopt_long(argc, argv, "+:h", long_options, NULL);
		if (found == -1 && optind == argc)
			return 0;
		if (found == 'h') {
			cli_help_print(command);
			return 1;
		}
		if (found == -1)
			err = parse_word(command, &word_at, argv[optind++]);
		else if (found < OPTION_VALUE_BASE)
			err = refuse(command, found, argv[at]);
		else
			err = parse_option(command,
					   &command->options[found - OPTION_VALUE_BASE],
					   "--", optarg);
		if (err)
			return err;
	}
}

/* Parses everything again after the file that the command line names, as the command line
 * has priority. */
static int parse_config(const struct cli_command *command,
			const struct option *long_options, int argc, char **argv)
{
	char path[4096];
	int err;

	snprintf(path, sizeof(path), "%s", command->config);
	prepare(command);
	err = cli_config_read(command, path);
	return err ? err : parse_line(command, long_options, argc, argv);
}

int cli_parse(const struct cli_command *command, int argc, char **argv)
{
	struct option *long_options = make_long_options(command);
	int rc;

	if (!long_options) {
		cli_fail(command, "no memory for its options");
		return -ENOMEM;
	}
	prepare(command);
	rc = parse_line(command, long_options, argc, argv);
	if (!rc && command->config && *command->config)
		rc = parse_config(command, long_options, argc, argv);
	free(long_options);
	return rc;
}
