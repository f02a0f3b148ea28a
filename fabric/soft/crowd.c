/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* crowd.c - see crowd.h. */
#include "crowd.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "limits.h"

/* The processor is crowded if a thread waited for it for one part in so many of the time. */
#define CROWDED_PART 16u

void soft_crowd_open(struct soft_crowd *crowd)
{
	*crowd = (struct soft_crowd){
		.fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC),
	};
}

void soft_crowd_close(struct soft_crowd *crowd)
{
	if (crowd->fd >= 0)
		close(crowd->fd);
}

/* The second number: nanoseconds for which it was ready and did not run. */
static bool read_waited(int fd, uint64_t *waited_ns)
{
	char text[96];
	ssize_t length = pread(fd, text, sizeof(text) - 1, 0);

	if (length <= 0)
		return false;
	text[length] = '\0';
	return sscanf(text, "%*u %" SCNu64, waited_ns) == 1;
}

bool soft_crowd_look(struct soft_crowd *crowd, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - crowd->looked_ns;
	uint64_t before_ns = crowd->waited_ns;

	if (crowd->fd < 0)
		return false;
	if (passed_ns >= SOFT_CROWD_LOOK_NS &&
	    read_waited(crowd->fd, &crowd->waited_ns)) {
		bool is_first = crowd->looked_ns == 0;

		crowd->looked_ns = now_ns;
		if (!is_first &&
		    crowd->waited_ns - before_ns > passed_ns / CROWDED_PART)
			crowd->crowded_until_ns = now_ns + SOFT_CROWDED_NS;
	}
	return now_ns < crowd->crowded_until_ns;
}
