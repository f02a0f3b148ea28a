/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The numbers of a memory server in the text form of Prometheus. */
#ifndef CLI_METRICS_H
#define CLI_METRICS_H

#include <stdio.h>

#include <rdmabox/server.h>

/** metrics_print() - all of them as they are now. */
void metrics_print(FILE *text, struct rbx_server *server);

#endif
