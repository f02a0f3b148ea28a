/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Hands the secret of a file to a volume of `rdmabox page`. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/page/page.h"

#define SECRET_BYTES_MIN 16 /* as a server wants it */

/* A secret that others can read is refused. */
int page_secret_write(const struct cli_command *command, const char *volume, const char *file)
{
	char secret[PAGE_VALUE_MAX];
	struct stat status;
	ssize_t count = -1;
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int err;

	if (fd < 0 || fstat(fd, &status)) {
		err = -errno;
		cli_fail(command, "cannot open secret file %s: %s", file, strerror(errno));
		goto out_close;
	}
	if (status.st_mode & S_IRWXO) {
		cli_fail(command, "secret file %s is open to everybody; close it with: chmod o-rwx %s",
			 file, file);
		err = -EACCES;
		goto out_close;
	}
	count = read(fd, secret, sizeof(secret));
	err = count < 0 ? -errno : 0;
	if (count == (ssize_t)sizeof(secret))
		err = -EFBIG;
	else if (count >= 0 && count < SECRET_BYTES_MIN)
		err = -EINVAL;
	if (!err)
		err = page_write(volume, "secret", secret, (size_t)count);
	if (err)
		cli_fail(command, "cannot use secret file %s: %s", file, strerror(-err));
	explicit_bzero(secret, sizeof(secret));
out_close:
	if (fd >= 0)
		close(fd);
	return err;
}
