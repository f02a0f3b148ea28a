/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command line: one table of options in, checked fields out.
 *
 * getopt_long() finds the option, the setter of its table entry checks the
 * value and stores it. Numbers are parsed strictly: the whole text must be the
 * number, and it must be in range; a typing error never becomes another number.
 * Checks of one option against another are the command's.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdmabox/rdmabox.h>

#include "cli/cli.h"

/* Above any character, so that a value cannot be mistaken for '?' or ':'. */
#define OPTION_VALUE_BASE 256
#define HELP_COLUMN 30

int cli_fail(const struct cli_command *command, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "rdmabox %s: ", command->name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return CLI_EXIT_USAGE;
}

static int parse_digits(const char *text, uint64_t *number, const char **rest)
{
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*number = strtoull(text, &end, 10);
	*rest = end;
	return errno ? -EINVAL : 0;
}

const char *cli_size_print(uint64_t bytes, char *text, size_t text_bytes)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB",
					     "TiB" };
	unsigned int unit = 0;

	while (bytes && bytes % 1024 == 0 && unit < 4) {
		bytes /= 1024;
		unit++;
	}
	snprintf(text, text_bytes, "%" PRIu64 " %s", bytes, units[unit]);
	return text;
}

static bool is_in_range(const struct cli_option *option, uint64_t number)
{
	return number >= option->min &&
	       (!option->max || number <= option->max);
}

int cli_set_flag(const struct cli_option *option, const char *text,
		 char *reason, size_t reason_bytes)
{
	(void)text, (void)reason, (void)reason_bytes;
	*(uint32_t *)option->field = 1;
	return 0;
}

int cli_set_number(const struct cli_option *option, const char *text,
		   char *reason, size_t reason_bytes)
{
	const char *rest;
	uint64_t number;

	if (!parse_digits(text, &number, &rest) && !*rest &&
	    number <= UINT32_MAX && is_in_range(option, number)) {
		*(uint32_t *)option->field = number;
		return 0;
	}
	snprintf(reason, reason_bytes,
		 "give a whole number from %" PRIu64 " to %" PRIu64,
		 option->min, option->max ? option->max : UINT32_MAX);
	return -EINVAL;
}

int cli_set_number_64(const struct cli_option *option, const char *text,
		      char *reason, size_t reason_bytes)
{
	const char *rest;

	if (!parse_digits(text, option->field, &rest) && !*rest)
		return 0;
	snprintf(reason, reason_bytes, "give a whole number below 2^64");
	return -EINVAL;
}

int cli_set_size(const struct cli_option *option, const char *text,
		 char *reason, size_t reason_bytes)
{
	char min[32], max[32];
	uint64_t bytes;

	if (!rbx_size_parse(text, &bytes) && is_in_range(option, bytes)) {
		*(uint64_t *)option->field = bytes;
		return 0;
	}
	snprintf(reason, reason_bytes,
		 "give %s to %s as a whole number, with or without K, M, G "
		 "or T",
		 cli_size_print(option->min, min, sizeof(min)),
		 cli_size_print(option->max ? option->max : 1ull << 63, max,
				sizeof(max)));
	return -EINVAL;
}

int cli_set_size_32(const struct cli_option *option, const char *text,
		    char *reason, size_t reason_bytes)
{
	struct cli_option wide = *option;
	uint64_t bytes;

	wide.field = &bytes;
	if (!wide.max || wide.max > UINT32_MAX)
		wide.max = UINT32_MAX;
	if (cli_set_size(&wide, text, reason, reason_bytes))
		return -EINVAL;
	*(uint32_t *)option->field = bytes;
	return 0;
}

int cli_set_seconds(const struct cli_option *option, const char *text,
		    char *reason, size_t reason_bytes)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end != text && !*end && isfinite(seconds) &&
	    seconds >= option->min && seconds <= option->max) {
		*(double *)option->field = seconds;
		return 0;
	}
	snprintf(reason, reason_bytes,
		 "give seconds from %" PRIu64 " to %" PRIu64 ", such as 2.5",
		 option->min, option->max);
	return -EINVAL;
}

int cli_set_text(const struct cli_option *option, const char *text,
		 char *reason, size_t reason_bytes)
{
	size_t len = strlen(text);

	if (!len || len >= option->max) {
		snprintf(reason, reason_bytes,
			 "give a text of 1 to %" PRIu64 " bytes",
			 option->max - 1);
		return -EINVAL;
	}
	memcpy(option->field, text, len + 1);
	return 0;
}

int cli_set_word(const struct cli_option *option, const char *text,
		 char *reason, size_t reason_bytes)
{
	const char *word = option->words;
	size_t len = strlen(text);

	while (len) {
		size_t word_len = strcspn(word, "|");

		if (word_len == len && !memcmp(word, text, len))
			return cli_set_text(option, text, reason,
					    reason_bytes);
		if (!word[word_len])
			break;
		word += word_len + 1;
	}
	snprintf(reason, reason_bytes, "give one of %s", option->words);
	return -EINVAL;
}

static void print_option(const struct cli_option *option)
{
	const char *help = option->help;
	int width = printf("  --%s%s%s", option->name, option->value ? " " : "",
			   option->value ? option->value : "");

	if (width < HELP_COLUMN)
		printf("%*s", HELP_COLUMN - width, "");
	else
		printf("\n%*s", HELP_COLUMN, "");
	while (*help) {
		size_t len = strcspn(help, "\n");

		printf("%.*s\n", (int)len, help);
		help += len;
		if (*help == '\n')
			printf("%*s", *++help ? HELP_COLUMN : 0, "");
	}
}

static void print_help(const struct cli_command *command)
{
	printf("usage: rdmabox %s %s\n\n%s\n\noptions:\n", command->name,
	       command->usage, command->purpose);
	for (size_t i = 0; i < command->options_count; i++)
		print_option(&command->options[i]);
	printf("  %-28s%s\n", "--help", "this text");
	if (command->notes)
		printf("\n%s\n", command->notes);
}

/* For getopt_long(), with --help and the end of the list; NULL without memory. */
static struct option *make_long_options(const struct cli_command *command)
{
	struct option *long_options =
		calloc(command->options_count + 2, sizeof(*long_options));
	size_t i;

	if (!long_options)
		return NULL;
	for (i = 0; i < command->options_count; i++)
		long_options[i] = (struct option){
			.name = command->options[i].name,
			.has_arg = command->options[i].value ?
					   required_argument :
					   no_argument,
			.val = OPTION_VALUE_BASE + i,
		};
	long_options[i] = (struct option){ "help", no_argument, NULL, 'h' };
	return long_options;
}

static int parse_option(const struct cli_command *command,
			const struct cli_option *option, const char *text)
{
	char reason[256];

	if (!option->set(option, text, reason, sizeof(reason)))
		return 0;
	cli_fail(command, "--%s '%s' is not accepted; %s", option->name, text,
		 reason);
	return -EINVAL;
}

/* getopt_long() found no option that it can take at argv[optind - 1]. */
static int refuse(const struct cli_command *command, int found, char **argv)
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
		cli_fail(command, "unknown option %s; see rdmabox %s --help",
			 argv[optind - 1], command->name);
	return -EINVAL;
}

static int parse(const struct cli_command *command,
		 const struct option *long_options, int argc, char **argv)
{
	int found;

	opterr = 0;
	while ((found = getopt_long(argc, argv, "+:h", long_options, NULL)) !=
	       -1) {
		if (found == 'h') {
			print_help(command);
			return 1;
		}
		if (found < OPTION_VALUE_BASE)
			return refuse(command, found, argv);
		if (parse_option(command,
				 &command->options[found - OPTION_VALUE_BASE],
				 optarg))
			return -EINVAL;
	}
	if (optind == argc)
		return 0;
	cli_fail(command, "unexpected '%s'; see rdmabox %s --help",
		 argv[optind], command->name);
	return -EINVAL;
}

int cli_parse(const struct cli_command *command, int argc, char **argv)
{
	struct option *long_options = make_long_options(command);
	int rc;

	if (!long_options) {
		cli_fail(command, "no memory for its options");
		return -ENOMEM;
	}
	rc = parse(command, long_options, argc, argv);
	free(long_options);
	return rc;
}
