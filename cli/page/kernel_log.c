/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_log.c - says what a device is waiting for while it is attached.
 *
 * An attach is one write that ends when all is done, minutes later if replicas have to be made
 * equal first. The kernel logs how far it is. A thread reads that log from now on, and prints these
 * lines. Without the right to read it there are none.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/page/page.h"

/* A record of /dev/kmsg: numbers, a semicolon, the line, and lines with fields. */
#define RECORD_BYTES 2048
#define FIRST_WORDS "rdmabox: "

static pthread_t thread;
static int log_fd = -1;
static int end_pipe[2]; /* what ends the thread: its other end is closed */

static void record_print(char *record)
{
	char *line = strchr(record, ';');

	if (!line++ || strncmp(line, FIRST_WORDS, strlen(FIRST_WORDS)))
		return;
	line += strlen(FIRST_WORDS);
	line[strcspn(line, "\n")] = '\0';
	if (strstr(line, " is being opened: "))
		fprintf(stderr, "%s\n", line);
}

static void *log_follow(void *arg)
{
	struct pollfd fds[] = { { .fd = log_fd, .events = POLLIN },
				{ .fd = end_pipe[0] } };
	char record[RECORD_BYTES];
	ssize_t count;

	(void)arg;
	while (poll(fds, 2, -1) >= 0 && !fds[1].revents) {
		count = read(log_fd, record, sizeof(record) - 1);
		if (count > 0) { /* else records were lost, which is no end */
			record[count] = '\0';
			record_print(record);
		}
	}
	return NULL;
}

void page_kernel_log_begin(void)
{
	log_fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (log_fd < 0)
		return;
	if (lseek(log_fd, 0, SEEK_END) < 0 || pipe(end_pipe))
		goto out_close;
	if (!pthread_create(&thread, NULL, log_follow, NULL))
		return;
	close(end_pipe[0]);
	close(end_pipe[1]);
out_close:
	close(log_fd);
	log_fd = -1;
}

void page_kernel_log_end(void)
{
	if (log_fd < 0)
		return;
	close(end_pipe[1]);
	pthread_join(thread, NULL);
	close(end_pipe[0]);
	close(log_fd);
	log_fd = -1;
}
