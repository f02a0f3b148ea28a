/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fabrics: tries whether the library can open them. The reason of a failure and its fix
 * come from the library.
 */
#include <stdio.h>

#include <rdmabox/rdmabox.h>

#include "cli/doctor/doctor.h"

static void try_fabric(struct doctor *doctor, const char *fabric,
		       const char *name)
{
	struct doctor_finding *finding = doctor_add(doctor, DOCTOR_OK, name);
	struct rbx_options options;
	struct rbx_context *ctx;
	char using[256];

	rbx_options_defaults(&options);
	snprintf(options.fabric, sizeof(options.fabric), "%s", fabric);
	if (!rbx_open(&ctx, &options)) {
		cli_describe(ctx, "using", using, sizeof(using));
		doctor_value(finding, "opens: %s", using);
		rbx_close(ctx);
		return;
	}
	finding->status = DOCTOR_FAIL;
	doctor_value(finding, "does not open");
	doctor_fix(finding, "%s", rbx_last_error());
}

void doctor_fabrics(struct doctor *doctor)
{
	struct doctor_finding *finding;

	try_fabric(doctor, "soft", "soft fabric");
	if (doctor->devices_count) {
		try_fabric(doctor, "verbs", "verbs fabric");
		return;
	}
	finding = doctor_add(doctor, DOCTOR_OK, "verbs fabric");
	doctor_value(finding, "not tried without device");
}
