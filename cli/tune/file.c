/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the path of the tuning file, and checks before minutes of measurement that it can
 * be written. The library finds the default file by the same rule when it writes
 * (rbx_tuning_save()), and makes its last two folders if they are missing.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/tune/tune.h"

/* False: this user has no folder of settings. */
static bool default_path(char path[PATH_MAX])
{
	const char *base = secure_getenv("XDG_CONFIG_HOME");
	const char *below = "";

	if (!base || base[0] != '/') {
		base = secure_getenv("HOME");
		below = "/.config";
	}
	return base && base[0] == '/' &&
	       snprintf(path, PATH_MAX, "%s%s/rdmabox/tune.json", base, below) < PATH_MAX;
}

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
	if (!default_path(path))
		return cli_fail(&tune_command, "there is no home folder for the tuning file; "
					       "give --out FILE, or --out none");
	snprintf(folder, sizeof(folder), "%s", path);
	if (!access(dirname(folder), F_OK))
		return cli_output_check(&tune_command, "out", path);
	err = check_folders(path);
	if (!err)
		return 0;
	return cli_fail(&tune_command, "cannot write the tuning file %s: %s; give --out FILE, "
				       "or --out none", path, strerror(-err));
}
