/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* hmac.h - opens the port's HMAC; call it before the first proof. */
#ifndef RBX_KERNEL_HMAC_H
#define RBX_KERNEL_HMAC_H

int rbx_hmac_open(void);
void rbx_hmac_close(void);

#endif
