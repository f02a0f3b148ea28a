/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connect.h - the connecting side, and the handshake message that both sides send.
 */
#ifndef SOFT_CONNECT_H
#define SOFT_CONNECT_H

#include "../fabric.h"
#include "frame.h"
#include "tls.h"

struct soft_device;

int soft_connect(struct rbx_device *device, const struct rbx_qp_init *init,
		 struct rbx_connect_init *connect, struct rbx_qp **qp,
		 char *error);

/* Whether a connection is to be under TLS. Both of its ends answer by the same address, that
 * of the accepting one. */
bool soft_wants_tls(const struct soft_device *device, int fd, bool accepted);

/* Sends a whole handshake message without blocking. A fresh socket always has
 * room for it. tls: NULL: in clear text. */
int soft_hello_send(int fd, struct soft_tls *tls, const struct soft_hello *hello);
/*
 * Receives at most what is missing of a handshake message without blocking.
 * Adds to *got_bytes. Returns 0 when it is complete, -EAGAIN, or an error.
 */
int soft_hello_receive(int fd, struct soft_tls *tls, uint8_t *bytes, size_t *got_bytes);

#endif
