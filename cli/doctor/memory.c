/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory: how much of it may be pinned, whether the kernel tells of changes, whether slabs
 * get huge pages, and how many NUMA nodes there are.
 *
 * An RDMA device needs pinned memory: a client pins its staging memory, a server all that
 * it lends. The software device needs none.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

#include "cli/doctor/doctor.h"

/* The most that a client pins. */
#define MEMLOCK_BYTES_MIN (64ull << 20)

#define CAP_IPC_LOCK_BIT 14 /* linux/capability.h; such a process has no limit */

/* The number after "@key:" in a file of such lines, or 0. */
static uint64_t find_number(const struct doctor *doctor, const char *file,
			    const char *key, int base)
{
	char path[PATH_MAX], line[256];
	size_t len = strlen(key);
	uint64_t number = 0;
	FILE *stream;

	doctor_path(doctor, path, "%s", file);
	stream = fopen(path, "r");
	if (!stream)
		return 0;
	while (fgets(line, sizeof(line), stream))
		if (!strncmp(line, key, len) && line[len] == ':')
			sscanf(line + len + 1, base == 16 ? "%" SCNx64 :
							    "%" SCNu64,
			       &number);
	fclose(stream);
	return number;
}

static void add_memlock(struct doctor *doctor)
{
	struct doctor_finding *finding =
		doctor_add(doctor, DOCTOR_OK, "memlock");
	struct rlimit limit;

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur == RLIM_INFINITY)
		doctor_value(finding, "unlimited");
	else
		doctor_value(finding, "%llu KiB",
			     (unsigned long long)limit.rlim_cur / 1024);
	if (find_number(doctor, "/proc/self/status", "CapEff", 16) >>
		    CAP_IPC_LOCK_BIT & 1) {
		doctor_value(finding, ", and this user is not bound by it");
		return;
	}
	if (!doctor->devices_count) {
		doctor_value(finding, "; the software device pins nothing");
		return;
	}
	if (limit.rlim_cur >= MEMLOCK_BYTES_MIN)
		return;
	finding->status = DOCTOR_FAIL;
	doctor_fix(finding, "ulimit -l unlimited, for good in "
		   "/etc/security/limits.d/rdma.conf: * - memlock unlimited; "
		   "a systemd unit: LimitMEMLOCK=infinity");
}

/* As lib/monitor/userfaultfd.c opens it. 0 or an errno. */
static int try_userfaultfd(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP |
			    UFFD_FEATURE_EVENT_REMOVE,
	};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	int err;

	if (fd < 0)
		return errno;
	err = ioctl(fd, UFFDIO_API, &api) ? errno : 0;
	close(fd);
	return err;
}

/* The sysctl vm.unprivileged_userfaultfd need not be set since 5.11. */
static void add_memory_monitor(struct doctor *doctor)
{
	struct doctor_finding *finding = doctor_add(doctor, DOCTOR_OK, "memory monitor");
	int err = try_userfaultfd();

	if (!err) {
		doctor_value(finding, "userfaultfd tells when memory is unmapped");
		return;
	}
	finding->status = DOCTOR_WARN;
	doctor_value(finding, "none: userfaultfd: %s; registrations are not kept", strerror(err));
	if (err == EPERM)
		doctor_fix(finding, "allow the system call userfaultfd in the seccomp filter of "
				    "the container or systemd unit");
	else
		doctor_fix(finding, "boot a kernel of 5.11 or newer with CONFIG_USERFAULTFD");
}

#define HUGE_PAGES "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"

/* A server puts slabs on huge pages: those that the system has reserved, or else those
 * that it gives to shared memory on request (MADV_HUGEPAGE). Then the device has fewer
 * translations to look up. */
static void add_huge_pages(struct doctor *doctor)
{
	static const char path[] =
		"/sys/kernel/mm/transparent_hugepage/shmem_enabled";
	struct doctor_finding *finding =
		doctor_add(doctor, DOCTOR_OK, "huge pages");
	char modes[128], free_count[32];

	if (doctor_read(doctor, free_count, sizeof(free_count), "%s",
			HUGE_PAGES) && strtoull(free_count, NULL, 10)) {
		doctor_value(finding, "%s of 2 MiB are free, for slabs of a "
			     "server", free_count);
		return;
	}
	if (!doctor_read(doctor, modes, sizeof(modes), "%s", path)) {
		doctor_value(finding, "shared memory has none in this kernel; "
			     "small pages serve");
		return;
	}
	doctor_value(finding, "of shared memory: %s", modes);
	if (!strstr(modes, "[never]") && !strstr(modes, "[deny]"))
		return;
	finding->status = DOCTOR_WARN;
	doctor_fix(finding, "a server gains from them: sysctl vm.nr_hugepages=N, "
		   "of 2 MiB, as many as it lends; or echo advise >%s", path);
}

static void add_numa(struct doctor *doctor)
{
	struct doctor_finding *finding = doctor_add(doctor, DOCTOR_OK, "NUMA");
	char nodes[64];

	if (!doctor_read(doctor, nodes, sizeof(nodes),
			 "/sys/devices/system/node/online"))
		strcpy(nodes, "not told");
	doctor_value(finding, "nodes %s", nodes);
	/* "0" is one node, "0-1" or "0,2" are several. */
	if (strpbrk(nodes, "-,"))
		doctor_value(finding, "; run near the device: numactl "
			     "--cpunodebind=NODE --membind=NODE");
}

void doctor_memory(struct doctor *doctor)
{
	add_memlock(doctor);
	add_memory_monitor(doctor);
	add_huge_pages(doctor);
	add_numa(doctor);
}
