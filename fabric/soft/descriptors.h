/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* descriptors.h - descriptors that came with a message on a local socket. */
#ifndef SOFT_DESCRIPTORS_H
#define SOFT_DESCRIPTORS_H

#include <stdint.h>
#include <sys/socket.h>

/*
 * Puts them into fds behind the `count` that are there, and closes those for which there is
 * no room. Returns how many there are then, at most max.
 */
uint8_t soft_descriptors_keep(struct msghdr *message, int *fds, uint8_t count,
			      uint8_t max);

/* Ignores -1, which stands for a descriptor that was lost. */
void soft_descriptor_close(int fd);

#endif
