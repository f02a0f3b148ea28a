/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox(1): one program, one command per file.
 *
 * This file finds the command; the command reads its own options. A new
 * command is a file, a line in cli.h and a line in the table.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rdmabox/rdmabox.h>

#include "cli/cli.h"

static const struct {
	const char *name;
	const char *purpose;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "serve", "lend this machine's memory to clients", cli_serve },
	{ "bench", "measure reads and writes of remote memory", cli_bench },
	{ "doctor", "tell what this machine can do, and how to mend it",
	  cli_doctor },
	{ "page", "other machines' memory as a block device, for swap", cli_page },
	{ "sim", "run the library in a simulated world that fails", cli_sim },
	{ "stat", "show the numbers of a memory server", cli_stat },
	{ "tune", "measure what this device likes, and remember it", cli_tune },
};

#define COMMANDS_COUNT (sizeof(commands) / sizeof(commands[0]))

static void print_help(void)
{
	puts("usage: rdmabox COMMAND [OPTION...]\n"
	     "       rdmabox --help | --version\n\n"
	     "Remote memory for programs.\n\n"
	     "commands:");
	for (size_t i = 0; i < COMMANDS_COUNT; i++)
		printf("  %-8s %s\n", commands[i].name, commands[i].purpose);
	puts("\n`rdmabox COMMAND --help` lists the options of a command.\n"
	     "Exit code: 0 all went well, 1 it ran and something failed,\n"
	     "2 the options or the surroundings were wrong and nothing ran.");
}

static int run(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "rdmabox: no command given; see rdmabox --help\n");
		return CLI_EXIT_USAGE;
	}
	for (size_t i = 0; i < COMMANDS_COUNT; i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_help();
		return CLI_EXIT_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("rdmabox " RBX_VERSION);
		return CLI_EXIT_OK;
	}
	fprintf(stderr, "rdmabox: unknown command '%s'; see rdmabox --help\n",
		argv[1]);
	return CLI_EXIT_USAGE;
}

/* What was printed may not have reached a disk that is full. */
int main(int argc, char **argv)
{
	int rc = run(argc, argv);

	errno = EIO;
	if ((fflush(stdout) || ferror(stdout)) && rc == CLI_EXIT_OK) {
		fprintf(stderr, "rdmabox: cannot write to stdout: %s\n",
			strerror(errno));
		rc = CLI_EXIT_FAILED;
	}
	return rc;
}
