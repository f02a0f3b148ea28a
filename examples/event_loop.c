/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * event_loop.c - a program with an event loop of its own that polls for itself: it has only
 * one thread.
 *
 *	rdmabox serve --listen 127.0.0.1:7471 --memory 1G &
 *	cc event_loop.c -o event_loop $(pkg-config --cflags --libs rdmabox)
 *	./event_loop 127.0.0.1:7471
 *
 * With pollers = 0 the context has no thread that polls. epoll waits for two descriptors: a
 * timer, at each tick of which a page is written or read, and rbx_event_fd(), which is
 * readable when rbx_poll() may have work. rbx_poll() calls the completion callbacks on this
 * thread. It is called until it finds nothing: only then does the descriptor report later
 * completions.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <rdmabox/rdmabox.h>

#define TICKS 200
#define TICK_NS 1000000
#define PAGE_BYTES 4096

static struct rbx_volume *volume;
static char page[PAGE_BYTES], back[PAGE_BYTES];
static unsigned int verified_count;
static bool under_way; /* then page, back and the request are RDMAbox's */
static int failed;

static void page_is_read(struct rbx_request *request)
{
	under_way = false;
	if (request->status != 0 || memcmp(page, back, PAGE_BYTES) != 0)
		failed = 1;
	else
		verified_count++;
}

/* Submits the read of the page that was written: a callback may submit. */
static void page_is_written(struct rbx_request *request)
{
	if (request->status != 0) {
		failed = 1;
		return;
	}
	request->op = RBX_READ;
	request->buf = back;
	request->complete = page_is_read;
	failed |= rbx_submit(volume, &request, 1);
}

static void tick(int timer_fd, struct rbx_request *request)
{
	uint64_t expirations;

	if (read(timer_fd, &expirations, sizeof(expirations)) < 0)
		return;
	if (under_way)
		return;
	under_way = true;
	snprintf(page, sizeof(page), "page %u", verified_count);
	request->op = RBX_WRITE;
	request->buf = page;
	request->length_bytes = PAGE_BYTES;
	request->offset = (uint64_t)verified_count * PAGE_BYTES;
	request->complete = page_is_written;
	failed |= rbx_submit(volume, &request, 1);
}

static int timer_open(void)
{
	struct itimerspec every = { { 0, TICK_NS }, { 0, TICK_NS } };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	if (fd >= 0)
		timerfd_settime(fd, 0, &every, NULL);
	return fd;
}

static void watch(int epoll_fd, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	failed |= epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static void loop(struct rbx_context *ctx)
{
	static struct rbx_request request;
	int timer_fd = timer_open(), completions_fd = rbx_event_fd(ctx);
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event events[2];

	watch(epoll_fd, timer_fd);
	watch(epoll_fd, completions_fd);
	while (!failed && verified_count < TICKS) {
		int count = epoll_wait(epoll_fd, events, 2, -1);

		for (int i = 0; i < count; i++) {
			if (events[i].data.fd == timer_fd)
				tick(timer_fd, &request);
			else
				while (rbx_poll(ctx) > 0)
					;
		}
	}
	close(epoll_fd);
	close(timer_fd);
}

int main(int argc, char **argv)
{
	struct rbx_options options;
	struct rbx_context *ctx = NULL;

	if (argc != 2) {
		fprintf(stderr, "usage: event_loop SERVER:PORT[,SERVER:PORT...]\n");
		return 2;
	}
	rbx_options_defaults(&options);
	options.pollers = 0;
	failed = rbx_open(&ctx, &options) ||
		 rbx_volume_open(ctx, &volume, argv[1], TICKS * PAGE_BYTES, NULL);
	if (!failed)
		loop(ctx);
	if (failed)
		fprintf(stderr, "event_loop: %s\n", rbx_last_error());
	else
		printf("%u pages written, read and compared, on one thread\n",
		       verified_count);
	rbx_volume_close(volume);
	rbx_close(ctx);
	return failed != 0;
}
