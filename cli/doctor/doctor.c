/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox doctor: shows what this machine can do, and how to mend the rest.
 *
 * Each examination adds findings: ok, warn or fail, with the fix if there is one. This
 * file prints them. A machine without an RDMA device is healthy, as the software device
 * can be used; a finding says how to get a device. Only something that exists and cannot
 * be used is a failure, and makes the exit code 1. Nothing is ever changed.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/commands.h"
#include "cli/doctor/doctor.h"

static struct doctor doctor;
static uint32_t as_json;

static const char *const status_names[] = { "ok", "warn", "fail" };

static const struct cli_option options[] = {
	{ "json", NULL, "print JSON", cli_set_flag, .field = &as_json,
	  .details = "An object: `checks`, a list of objects with `name`, `status`, `value` "
		     "and `fix`, and how many are `ok`, `warn` and `fail`." },
	{ "root", "DIR", "look at DIR/sys and DIR/proc, for tests",
	  cli_set_text, doctor.root, .max = sizeof(doctor.root),
	  .argument = CLI_ARGUMENT_DIRECTORY },
};

static int cli_doctor(int argc, char **argv);

const struct cli_command doctor_command = {
	.name = "doctor",
	.purpose = "tell what this machine can do, and how to mend the rest",
	.notes = "Exit code 1 if anything fails. Nothing is changed.",
	CLI_OPTIONS(options),
	.run = cli_doctor,
};

struct doctor_finding *doctor_add(struct doctor *d, enum doctor_status status,
				  const char *name)
{
	/* If there are more findings than places, the last place is overwritten. */
	size_t at = d->findings_count < DOCTOR_FINDINGS_MAX ?
			    d->findings_count++ :
			    DOCTOR_FINDINGS_MAX - 1;
	struct doctor_finding *finding = &d->findings[at];

	memset(finding, 0, sizeof(*finding));
	finding->status = status;
	snprintf(finding->name, sizeof(finding->name), "%s", name);
	return finding;
}

static void append(char *text, size_t bytes, const char *format, va_list args)
{
	size_t used = strlen(text);

	vsnprintf(text + used, bytes - used, format, args);
}

void doctor_value(struct doctor_finding *finding, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	append(finding->value, sizeof(finding->value), format, args);
	va_end(args);
}

void doctor_fix(struct doctor_finding *finding, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	append(finding->fix, sizeof(finding->fix), format, args);
	va_end(args);
}

static void make_path(const struct doctor *d, char path[PATH_MAX],
		      const char *format, va_list args)
{
	int used = snprintf(path, PATH_MAX, "%s", d->root);

	vsnprintf(path + used, PATH_MAX - used, format, args);
}

void doctor_path(const struct doctor *d, char path[PATH_MAX],
		 const char *format, ...)
{
	va_list args;

	va_start(args, format);
	make_path(d, path, format, args);
	va_end(args);
}

bool doctor_read(const struct doctor *d, char *line, size_t bytes,
		 const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	FILE *file;

	va_start(args, format);
	make_path(d, path, format, args);
	va_end(args);
	line[0] = 0;
	file = fopen(path, "r");
	if (!file)
		return false;
	if (!fgets(line, bytes, file))
		line[0] = 0;
	fclose(file);
	line[strcspn(line, "\n")] = 0;
	return *line;
}

static int count(enum doctor_status status)
{
	int found = 0;

	for (size_t i = 0; i < doctor.findings_count; i++)
		found += doctor.findings[i].status == status;
	return found;
}

static void print_table(void)
{
	for (size_t i = 0; i < doctor.findings_count; i++) {
		const struct doctor_finding *finding = &doctor.findings[i];

		printf("%-4s  %-20s %s\n", status_names[finding->status],
		       finding->name, finding->value);
		if (*finding->fix)
			printf("%27sfix: %s\n", "", finding->fix);
	}
	printf("\n%d ok, %d warn, %d fail\n", count(DOCTOR_OK),
	       count(DOCTOR_WARN), count(DOCTOR_FAIL));
}

static int print_json(void)
{
	json_t *checks = json_array();

	for (size_t i = 0; i < doctor.findings_count; i++) {
		const struct doctor_finding *finding = &doctor.findings[i];

		json_array_append_new(
			checks, json_pack("{ss ss ss ss}", "name",
					  finding->name, "status",
					  status_names[finding->status],
					  "value", finding->value, "fix",
					  finding->fix));
	}
	return cli_json_write(&doctor_command,
			      json_pack("{so si si si}", "checks", checks,
					"ok", count(DOCTOR_OK), "warn",
					count(DOCTOR_WARN), "fail",
					count(DOCTOR_FAIL)),
			      "-");
}

static int cli_doctor(int argc, char **argv)
{
	int rc = cli_parse(&doctor_command, argc, argv);
	struct stat root;

	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	if (*doctor.root && (stat(doctor.root, &root) || !S_ISDIR(root.st_mode)))
		return cli_fail(&doctor_command, "--root %s is no directory; give one "
				"that holds sys and proc", doctor.root);
	doctor_devices(&doctor);
	doctor_kernel(&doctor);
	doctor_memory(&doctor);
	doctor_fabrics(&doctor);
	if (as_json && print_json())
		return CLI_EXIT_FAILED;
	if (!as_json)
		print_table();
	return count(DOCTOR_FAIL) ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}
