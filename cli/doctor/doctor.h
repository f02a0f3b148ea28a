/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * doctor.h - the parts of rdmabox doctor.
 *
 * Each examination looks at one part of the machine and adds its findings. It reads plain
 * files of /sys and /proc, so it works if the RDMA libraries are missing or broken; that
 * is when the doctor is needed.
 */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/cli.h"

#define DOCTOR_FINDINGS_MAX 256
#define DOCTOR_DEVICES_MAX 32

enum doctor_status {
	DOCTOR_OK, /* as it should be, or not needed here */
	DOCTOR_WARN, /* works, but could be better */
	DOCTOR_FAIL, /* something exists but cannot be used */
};

struct doctor_finding {
	enum doctor_status status;
	char name[48];
	char value[512];
	char fix[512]; /* "": nothing to do */
};

struct doctor {
	char root[256]; /* put before every path; "" except in tests */
	struct doctor_finding findings[DOCTOR_FINDINGS_MAX];
	size_t findings_count;
	char devices[DOCTOR_DEVICES_MAX][64]; /* of /sys/class/infiniband */
	size_t devices_count;
};

/* The examinations, in the order in which they are printed. */
void doctor_devices(struct doctor *doctor); /* fills in devices */
void doctor_kernel(struct doctor *doctor);
void doctor_memory(struct doctor *doctor);
void doctor_fabrics(struct doctor *doctor);

/** doctor_add() - adds a finding whose value is yet to be said. */
struct doctor_finding *doctor_add(struct doctor *doctor,
				  enum doctor_status status, const char *name);

/* Say the value or the fix of a finding; more than one call appends. */
void doctor_value(struct doctor_finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void doctor_fix(struct doctor_finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** doctor_read() - the first line of a file, "" if it cannot be read. */
bool doctor_read(const struct doctor *doctor, char *line, size_t bytes,
		 const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/** doctor_path() - a path below the root. */
void doctor_path(const struct doctor *doctor, char path[PATH_MAX],
		 const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
