/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * window.h - windows: parts of regions for the peer of one qp.
 */
#ifndef SOFT_WINDOW_H
#define SOFT_WINDOW_H

#include "../fabric.h"

int soft_create_window(struct rbx_qp *qp,
		       const struct rbx_device_window_init *init,
		       struct rbx_device_window **window, char *error);
void soft_destroy_window(struct rbx_device_window *window);

#endif
