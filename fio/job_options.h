/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * job_options.h - the options of a job, and the library's options that follow from them.
 */
#ifndef RDMABOX_FIO_JOB_OPTIONS_H
#define RDMABOX_FIO_JOB_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <rdmabox/rdmabox.h>

struct thread_data;
struct fio_option;

/* Filled in by fio, which owns the texts. */
struct job_options {
	void *pad; /* fio takes offset 0 for "no field" */
	char *servers;
	unsigned long long volume_bytes; /* 0: as much as the job needs */
	char *volume_name; /* a named volume in place of a new one; NULL: none */
	unsigned int take_over;
	unsigned int replicas;
	unsigned int checksums;
	unsigned int on_demand;
	unsigned int urgent_reads;
	unsigned int insecure;
	unsigned int counters;
	char *secret_file;
	char *credential;
	char *fabric;
	char *device;
	char *mode;
	char *window;
	char *fragment;
	char *buffers;
	char *polling;
	char *pollers;
	char *poll_cpu;
	char *qps;
	char *peer_timeout;
	char *overload;
};

/* The table for fio. */
extern struct fio_option job_option_table[];

/* Whether the job has a named volume. */
bool job_options_is_named(const struct job_options *job);

/* Whether the job's buffers are registered before it starts. */
bool job_options_register_buffers(const struct job_options *job);

/**
 * job_options_library() - the options of the library that a job asks for.
 *
 * Returns 0 or -EINVAL, having told the user.
 */
int job_options_library(const struct job_options *job,
			struct rbx_options *options);

/** job_options_volume() - the same for its volume, whose name is fio's text. */
void job_options_volume(const struct job_options *job,
			struct rbx_volume_options *options);

#endif
