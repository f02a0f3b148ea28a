/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * files.c - event and timer descriptors, and waiting for them. Other descriptors go to the
 * system: the memory files of slabs are real.
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/descriptors.h"
#include "sim/fiber.h"
#include "sim/host/wrap.h"
#include "sim/sites.h"

int __wrap_eventfd(unsigned int count, int flags)
{
	int fd = rbx_sim_descriptor_open();

	(void)flags;
	if (count != 0)
		rbx_sim_descriptor_raise(fd, count);
	return fd;
}

ssize_t __wrap_read(int fd, void *buf, size_t size)
{
	uint64_t count;

	if (!rbx_sim_is_descriptor(fd))
		return __real_read(fd, buf, size);
	count = rbx_sim_descriptor_take(fd);
	if (count == 0) {
		errno = EAGAIN;
		return -1;
	}
	memcpy(buf, &count, sizeof(count));
	return sizeof(count);
}

ssize_t __wrap_write(int fd, const void *buf, size_t size)
{
	uint64_t count;

	if (!rbx_sim_is_descriptor(fd))
		return __real_write(fd, buf, size);
	memcpy(&count, buf, sizeof(count));
	rbx_port_atomic_begins();
	rbx_sim_descriptor_raise(fd, count);
	return sizeof(count);
}

/* Those of the C library do not call read() and write() in a way that could be seen. */
int __wrap_eventfd_read(int fd, eventfd_t *count)
{
	return __wrap_read(fd, count, sizeof(*count)) < 0 ? -1 : 0;
}

int __wrap_eventfd_write(int fd, eventfd_t count)
{
	return __wrap_write(fd, &count, sizeof(count)) < 0 ? -1 : 0;
}

int __wrap_epoll_create1(int flags)
{
	(void)flags;
	return rbx_sim_descriptor_open();
}

/* Members are added and stay, and the program never asks which of them it was. */
int __wrap_epoll_ctl(int set, int operation, int fd, struct epoll_event *event)
{
	(void)operation;
	(void)event;
	rbx_sim_descriptor_join(set, fd);
	return 0;
}

int __wrap_close(int fd)
{
	if (!rbx_sim_is_descriptor(fd))
		return __real_close(fd);
	rbx_sim_descriptor_close(fd);
	return 0;
}

/* One that is below 0 is passed over. */
static bool is_looked_at(const struct pollfd *one)
{
	return one->fd >= 0;
}

static int look(struct pollfd *fds, nfds_t count)
{
	int ready = 0;

	for (nfds_t i = 0; i < count; i++) {
		fds[i].revents = is_looked_at(&fds[i]) &&
						 rbx_sim_descriptor_is_raised(fds[i].fd) ?
					 POLLIN :
					 0;
		ready += fds[i].revents != 0;
	}
	return ready;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	uint64_t until_ns = timeout_ms < 0 ?
				    RBX_SIM_FOREVER :
				    rbx_sim_now() + (uint64_t)timeout_ms *
							    1000000u;
	int ready;

	rbx_port_atomic_begins();
	ready = look(fds, count);
	if (ready != 0 || timeout_ms == 0)
		return ready;
	for (nfds_t i = 0; i < count; i++)
		if (is_looked_at(&fds[i]))
			rbx_sim_descriptor_wait_begin(fds[i].fd);
	(void)rbx_sim_pause(until_ns);
	for (nfds_t i = 0; i < count; i++)
		if (is_looked_at(&fds[i]))
			rbx_sim_descriptor_wait_end(fds[i].fd);
	return look(fds, count);
}

int __wrap_timerfd_create(int clock, int flags)
{
	(void)clock;
	(void)flags;
	return rbx_sim_descriptor_open();
}

/* They are set once. */
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *time,
			   struct itimerspec *former)
{
	(void)flags;
	(void)former;
	rbx_sim_descriptor_raise_after(fd, (uint64_t)time->it_value.tv_sec * 1000000000u +
						   (uint64_t)time->it_value.tv_nsec);
	return 0;
}

int __wrap_memfd_create(const char *name, unsigned int flags)
{
	if (rbx_sim_site(RBX_SIM_SITE_memory_shortage)) {
		errno = ENOMEM;
		return -1;
	}
	return __real_memfd_create(name, flags);
}
