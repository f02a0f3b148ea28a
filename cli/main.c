/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox(1): one program with a folder or file for each command (commands.c).
 *
 * This file finds the command, and handles the two options that need none.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rdmabox/rdmabox.h>

#include "cli/cli.h"

static int run(int argc, char **argv)
{
	if (argc < 2) {
		cli_main_usage_print(stderr);
		return CLI_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		cli_main_help_print();
		return CLI_EXIT_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("rdmabox " RBX_VERSION);
		return CLI_EXIT_OK;
	}
	if (argv[1][0] == '-') {
		fprintf(stderr, "rdmabox: unknown option %s; see rdmabox --help\n", argv[1]);
		return CLI_EXIT_USAGE;
	}
	return cli_dispatch(NULL, cli_commands, argc, argv);
}

/* If a disk is full, output may be lost; that is an error. */
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
