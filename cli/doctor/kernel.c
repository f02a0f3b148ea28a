/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel: the modules that an RDMA program needs, and whether a process may fork
 * while a device uses its memory.
 *
 * Since 5.12 the kernel copies pinned pages at fork, so the parent keeps the page that
 * the device writes to. Before, the first write after a fork gave the parent a copy, and
 * the device went on with the old page.
 */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"

#define FORK_MAJOR 5
#define FORK_MINOR 12

static const char *const needed_modules[] = { "ib_core", "ib_uverbs",
					      "rdma_cm", "rdma_ucm" };
static const char *const driver_modules[] = {
	"rdma_rxe", "siw",	"mlx5_ib", "mlx4_ib", "irdma", "bnxt_re",
	"efa",	    "iw_cxgb4", "qedr",	   "erdma",   "mana_ib", "hfi1",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Loaded, or built into the kernel: both have a folder. */
static bool is_loaded(const struct doctor *doctor, const char *module)
{
	char path[PATH_MAX];

	doctor_path(doctor, path, "/sys/module/%s", module);
	return !access(path, F_OK);
}

static void add_modules(struct doctor *doctor)
{
	struct doctor_finding *finding =
		doctor_add(doctor, DOCTOR_OK, "kernel modules");
	size_t loaded = 0;

	for (size_t i = 0; i < COUNT(needed_modules); i++) {
		bool is_there = is_loaded(doctor, needed_modules[i]);

		doctor_value(finding, "%s%s%s", i ? ", " : "",
			     is_there ? "" : "no ", needed_modules[i]);
		loaded += is_there;
		if (is_there)
			continue;
		doctor_fix(finding, "%s%s",
			   *finding->fix ? " " : "modprobe -a ",
			   needed_modules[i]);
	}
	if (loaded == COUNT(needed_modules))
		return;
	if (doctor->devices_count) {
		finding->status = DOCTOR_FAIL;
		return;
	}
	finding->fix[0] = 0;
	doctor_value(finding, "; not needed without device");
}

static void add_drivers(struct doctor *doctor)
{
	struct doctor_finding *finding =
		doctor_add(doctor, DOCTOR_OK, "kernel drivers");

	for (size_t i = 0; i < COUNT(driver_modules); i++)
		if (is_loaded(doctor, driver_modules[i]))
			doctor_value(finding, "%s%s",
				     *finding->value ? " " : "",
				     driver_modules[i]);
	if (!*finding->value)
		doctor_value(finding, "none of RDMA devices");
}

static void add_fork_mode(struct doctor *doctor)
{
	struct doctor_finding *finding =
		doctor_add(doctor, DOCTOR_OK, "fork mode");
	struct utsname kernel;
	int major = 0, minor = 0;

	uname(&kernel);
	sscanf(kernel.release, "%d.%d", &major, &minor);
	if (major > FORK_MAJOR ||
	    (major == FORK_MAJOR && minor >= FORK_MINOR)) {
		doctor_value(finding, "kernel %s copies pinned pages at fork; "
			     "programs may fork", kernel.release);
		return;
	}
	doctor_value(finding, "kernel %s does not copy pinned pages at fork",
		     kernel.release);
	if (!doctor->devices_count)
		return;
	finding->status = DOCTOR_WARN;
	doctor_fix(finding, "set RDMAV_FORK_SAFE=1 for programs that fork, or "
		   "boot kernel %d.%d or newer", FORK_MAJOR, FORK_MINOR);
}

void doctor_kernel(struct doctor *doctor)
{
	add_modules(doctor);
	add_drivers(doctor);
	add_fork_mode(doctor);
}
