/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * descriptors.c - takes the descriptors that a peer sent (SCM_RIGHTS).
 *
 * Each descriptor that arrives is kept if there is room, and closed otherwise, so that a peer
 * cannot fill our table of open files.
 */
#include "descriptors.h"

#include <string.h>
#include <unistd.h>

uint8_t soft_descriptors_keep(struct msghdr *message, int *fds, uint8_t count,
			      uint8_t max)
{
	struct cmsghdr *header;
	size_t here, i;
	int fd;

	for (header = CMSG_FIRSTHDR(message); header;
	     header = CMSG_NXTHDR(message, header)) {
		if (header->cmsg_level != SOL_SOCKET ||
		    header->cmsg_type != SCM_RIGHTS)
			continue;
		here = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < here; i++) {
			memcpy(&fd, CMSG_DATA(header) + i * sizeof(int),
			       sizeof(int));
			if (count == max)
				close(fd);
			else
				fds[count++] = fd;
		}
	}
	return count;
}

void soft_descriptor_close(int fd)
{
	if (fd >= 0)
		close(fd);
}
