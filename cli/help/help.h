/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* help.h - the parts of rdmabox help: help.c, and tables.c, the tables as JSON. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cli/cli.h"

/** help_tables_json() - all commands, as rdmabox(1) says. */
json_t *help_tables_json(void);

#endif
