/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --help: prints the table of a command, with the defaults that its fields hold; and the
 * help of rdmabox itself.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

#define HELP_COLUMN 30
#define LINE_COLUMNS 80

/* Prints each line at the column; returns the column at which the last one ended. */
static int print_lines(const char *text)
{
	int column = HELP_COLUMN;

	while (*text) {
		size_t len = strcspn(text, "\n");

		printf("%.*s", (int)len, text);
		column = HELP_COLUMN + (int)len;
		text += len;
		if (*text == '\n')
			printf("\n%*s", *++text ? HELP_COLUMN : 0, "");
	}
	return column;
}

static void print_default(const struct cli_option *option, int column)
{
	char preset[128];
	int width;

	cli_option_default(option, preset, sizeof(preset));
	if (!*preset)
		return;
	width = (int)(strlen(" (default: )") + strlen(preset));
	if (column + width > LINE_COLUMNS)
		printf("\n%*s", HELP_COLUMN - 1, "");
	printf(" (default: %s)", preset);
}

static void print_option(const struct cli_option *option)
{
	bool is_word = option->place == CLI_WORD;
	int width = printf("  %s%s%s%s", is_word ? "" : "--",
			   is_word ? "" : option->name,
			   option->value && !is_word ? " " : "",
			   option->value ? option->value : "");

	if (width < HELP_COLUMN)
		printf("%*s", HELP_COLUMN - width, "");
	else
		printf("\n%*s", HELP_COLUMN, "");
	print_default(option, print_lines(option->help));
	putchar('\n');
}

static void print_usage(const struct cli_command *command)
{
	bool is_or = false; /* this option or the one before it */

	printf("usage: rdmabox %s", command->name);
	if (command->usage) {
		printf(" %s\n", command->usage);
		return;
	}
	for (size_t i = 0; i < command->options_count; i++) {
		const struct cli_option *option = &command->options[i];

		if (option->place == CLI_OPTION_OR_WORD && option->is_required)
			printf(" %s", option->value);
		else if (option->place == CLI_WORD)
			printf(" [%s]", option->value);
		else if (option->is_required)
			printf(" %s--%s %s", is_or ? "| " : "", option->name, option->value);
		is_or = option->or_next;
	}
	puts(command->commands ? " COMMAND [OPTION...]" : " [OPTION...]");
}

static void print_options(const struct cli_command *command)
{
	if (command->options_count && !command->options[0].group)
		puts("\nOptions:");
	for (size_t i = 0; i < command->options_count; i++) {
		if (command->options[i].group)
			printf("\n%s:\n", command->options[i].group);
		print_option(&command->options[i]);
	}
	printf("%s  %-28s%s\n", command->options_count ? "\n" : "", "--help",
	       "show this text");
}

/* Without the group that it belongs to. */
static const char *last_word(const struct cli_command *command)
{
	const char *space = strrchr(command->name, ' ');

	return space ? space + 1 : command->name;
}

void cli_commands_print(FILE *stream, const struct cli_command *const *commands)
{
	const struct cli_command *const *command;
	size_t width = 0, length;

	for (command = commands; *command; command++) {
		length = strlen(last_word(*command));
		width = length > width ? length : width;
	}
	for (command = commands; *command; command++)
		fprintf(stream, "  %-*s  %s\n", (int)width, last_word(*command),
			(*command)->purpose);
}

void cli_help_print(const struct cli_command *command)
{
	print_usage(command);
	printf("\n%c%s.\n", toupper((unsigned char)command->purpose[0]),
	       command->purpose + 1);
	if (command->commands) {
		puts("\nCommands:");
		cli_commands_print(stdout, command->commands);
		puts("");
	}
	print_options(command);
	if (command->notes)
		printf("\n%s\n", command->notes);
}

void cli_main_usage_print(FILE *stream)
{
	fputs("usage: rdmabox COMMAND [OPTION...]\n"
	      "       rdmabox --help | --version\n\n"
	      "Remote memory for programs.\n\n"
	      "Commands:\n",
	      stream);
	cli_commands_print(stream, cli_commands);
	fputs("\n`rdmabox help COMMAND` or `rdmabox COMMAND --help` lists the options of a "
	      "command.\n",
	      stream);
}

void cli_main_help_print(void)
{
	cli_main_usage_print(stdout);
	puts("Exit code: 0 all went well, 1 it ran and something failed,\n"
	     "2 the options or the surroundings were wrong and nothing ran,\n"
	     "128 and the number of the signal that interrupted it.");
}
