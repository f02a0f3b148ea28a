/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox help: prints the --help of a command, or the tables of all commands as JSON.
 * The build makes manual pages and completions from the JSON (generate/).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/help/help.h"

#define WORDS_MAX 2 /* "page attach" */

static const char *words[WORDS_MAX];
static size_t words_count;
static uint32_t as_json;

static int take_word(const struct cli_option *option, const char *text, char *reason,
		     size_t reason_bytes)
{
	(void)option;
	if (words_count == WORDS_MAX) {
		snprintf(reason, reason_bytes, "give one command");
		return -EINVAL;
	}
	words[words_count++] = text;
	return 0;
}

static const struct cli_option options[] = {
	{ "command", "COMMAND...", "command to tell about, such as bench or page attach",
	  take_word, .place = CLI_WORD, .is_repeatable = true,
	  .argument = CLI_ARGUMENT_COMMAND },
	{ "json", NULL, "print the options of all commands as JSON", cli_set_flag,
	  .field = &as_json,
	  .details = "An object: `commands`, a list of objects with `name`, `purpose`, "
		     "`options` and, if it has some, `commands` of its own. Manual pages and "
		     "completions are made from it." },
};

static int cli_help(int argc, char **argv);

const struct cli_command help_command = {
	.name = "help",
	.purpose = "tell the options of a command",
	CLI_OPTIONS(options),
	.run = cli_help,
};

/* It runs the command's own --help, so the two cannot differ. */
static int help_of_command(void)
{
	char *arguments[WORDS_MAX + 2] = { 0 };
	int count = 0;

	arguments[count++] = "rdmabox";
	for (size_t i = 0; i < words_count; i++)
		arguments[count++] = (char *)words[i];
	arguments[count++] = "--help";
	return cli_dispatch(NULL, cli_commands, count, arguments);
}

static int cli_help(int argc, char **argv)
{
	int rc = cli_parse(&help_command, argc, argv);

	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	if (as_json)
		return cli_json_write(&help_command, help_tables_json(), "-") ?
			       CLI_EXIT_FAILED :
			       CLI_EXIT_OK;
	if (!words_count) {
		cli_main_help_print();
		return CLI_EXIT_OK;
	}
	return help_of_command();
}
