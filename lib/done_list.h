/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* done_list.h - completed requests that wait for rbx_reap(), and waiting for room. */
#ifndef RBX_LIB_DONE_LIST_H
#define RBX_LIB_DONE_LIST_H

struct rbx_context;

int rbx_done_list_init(struct rbx_context *ctx);
void rbx_done_list_destroy(struct rbx_context *ctx);

#endif
