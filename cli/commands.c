/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The list of all commands, in the order of --help, and the search in it.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"

const struct cli_command *const cli_commands[] = {
	&serve_command,
	&bench_command,
	&doctor_command,
	&page_command,
	&pool_command,
	&registration_command,
	&sim_command,
	&stat_command,
	&top_command,
	&tune_command,
	&volume_command,
	&help_command,
	NULL,
};

static const char *last_word(const char *name)
{
	const char *space = strrchr(name, ' ');

	return space ? space + 1 : name;
}

const struct cli_command *cli_command_find(const struct cli_command *const *commands,
					   const char *word)
{
	for (; *commands; commands++)
		if (!strcmp(last_word((*commands)->name), word))
			return *commands;
	return NULL;
}

static const char *command_name(const void *of, size_t index)
{
	const struct cli_command *const *commands = of;

	return commands[index] ? last_word(commands[index]->name) : NULL;
}

/* Prints "rdmabox: " or "rdmabox page: ", the error, and the help to read. */
static int unknown_command(const struct cli_command *of,
			   const struct cli_command *const *commands, const char *word)
{
	const char *nearest = cli_nearest(word, command_name, commands);
	const char *space = of ? " " : "", *name = of ? of->name : "";

	fprintf(stderr, "rdmabox%s%s: unknown command '%s'; ", space, name, word);
	if (nearest)
		fprintf(stderr, "did you mean '%s'? See", nearest);
	else
		fprintf(stderr, "see");
	fprintf(stderr, " rdmabox%s%s --help\n", space, name);
	return CLI_EXIT_USAGE;
}

static int no_command(const struct cli_command *of)
{
	const struct cli_command *const *command = of->commands;
	char names[256];
	size_t used = 0;

	for (; *command; command++) {
		const char *before = command == of->commands ? "" : command[1] ? ", " : " or ";

		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", before,
					 last_word((*command)->name));
		assert(used < sizeof(names));
	}
	return cli_fail(of, "no command; give %s, see rdmabox %s --help", names, of->name);
}

/* `volume help create` is as `help volume create`. */
static int group_help(const struct cli_command *of, int argc, char **argv)
{
	char *help = (char *)"--help", *arguments[] = { argv[0], argv[argc - 1], help };

	if (argc > 3)
		return cli_fail(of, "help: give one command");
	if (argc == 3)
		return cli_dispatch(of, of->commands, 3, arguments);
	cli_help_print(of);
	return CLI_EXIT_OK;
}

int cli_group_run(const struct cli_command *of, int argc, char **argv)
{
	if (argc < 2)
		return no_command(of);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return group_help(of, argc, argv);
	return cli_dispatch(of, of->commands, argc, argv);
}

int cli_dispatch(const struct cli_command *of, const struct cli_command *const *commands,
		 int argc, char **argv)
{
	const struct cli_command *command = cli_command_find(commands, argv[1]);

	return command ? command->run(argc - 1, argv + 1) :
			 unknown_command(of, commands, argv[1]);
}
