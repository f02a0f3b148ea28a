/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Checks before minutes of measurement that the tuning file can be written.
 * rbx_tuning_save() makes the last two folders of the default file if they are missing.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/tune/tune.h"

/* Checks the deepest folder that exists, as the last ones may be missing. 0 or -errno. */
static int check_folders(const char *path)
{
	char folder[PATH_MAX], *parent = folder;

	snprintf(folder, sizeof(folder), "%s", path);
	for (int missing = 0; missing <= 2; missing++) {
		parent = dirname(parent);
		if (!access(parent, F_OK))
			return access(parent, W_OK | X_OK) ? -errno : 0;
	}
	return -ENOENT;
}

int tune_file_check(char path[PATH_MAX])
{
	char folder[PATH_MAX];
	int err;

	if (*tune_options.out) {
		snprintf(path, PATH_MAX, "%s", tune_options.out);
		return cli_output_check(&tune_command, "out", path);
	}
	if (rbx_tuning_default_path(path, PATH_MAX))
		return cli_fail(&tune_command, "%s; give --out FILE, or --out none",
				rbx_last_error());
	snprintf(folder, sizeof(folder), "%s", path);
	if (!access(dirname(folder), F_OK))
		return cli_output_check(&tune_command, "out", path);
	err = check_folders(path);
	if (!err)
		return 0;
	return cli_fail(&tune_command, "cannot write the tuning file %s: %s; give --out FILE, "
				       "or --out none", path, strerror(-err));
}
