/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reach.h - the options that say how client and server reach each other, which
 * several commands have: entries of their tables, for fields of those names in
 * `where`.
 */
#ifndef CLI_REACH_H
#define CLI_REACH_H

#include "cli/cli.h"

#define CLI_REACH_FABRIC(where, what)                                    \
	{ "fabric", "auto|verbs|soft|soft:tcp", what, cli_set_word,      \
	  (where).fabric, .max = sizeof((where).fabric),                 \
	  .words = "auto|verbs|soft|soft:tcp" }

#define CLI_REACH_DEVICE(where)                                          \
	{ "device", "NAME[:PORT]",                                       \
	  "verbs: the device, such as mlx5_0:1\n"                        \
	  "soft: registered, to register as most NICs must",             \
	  cli_set_text, (where).device, .max = sizeof((where).device) }

#define CLI_REACH_SECRET(where, whom)                                    \
	{ "secret-file", "F", "the secret shared with " whom,            \
	  cli_set_text, (where).secret_file,                             \
	  .max = sizeof((where).secret_file) },                          \
	{ "insecure", NULL, "no secret, even beyond loopback",           \
	  cli_set_flag, .field = &(where).insecure }

/* One of them, or none. Returns 0 or an exit code. */
static inline int cli_reach_check(const struct cli_command *command,
				  const char *secret_file, uint32_t insecure)
{
	if (!*secret_file || !insecure)
		return 0;
	return cli_fail(command, "--secret-file and --insecure exclude each "
				 "other; give one of them");
}

#endif
