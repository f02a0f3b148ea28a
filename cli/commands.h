/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * commands.h - the commands and the files that have their tables.
 */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/cli.h"

extern const struct cli_command serve_command; /* serve/options.c */
extern const struct cli_command bench_command; /* bench/table.c */
extern const struct cli_command doctor_command; /* doctor/doctor.c */
extern const struct cli_command page_command; /* page/page.c */
extern const struct cli_command pool_command; /* pool/pool.c */
extern const struct cli_command registration_command; /* registration/options.c */
extern struct cli_command sim_command; /* sim/options.c */
extern const struct cli_command stat_command; /* stat.c */
extern const struct cli_command top_command; /* top/options.c */
extern const struct cli_command tune_command; /* tune/options.c */
extern const struct cli_command volume_command; /* volume/volume.c */
extern const struct cli_command help_command; /* help/help.c */

#endif
