/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * settings.h - how etcd is reached, by the environment:
 *
 *	RDMABOX_ETCD_CA_FILE	whom to believe with etcds:// (default: the system's)
 *	RDMABOX_ETCD_CERT_FILE	the certificate of this client, and
 *	RDMABOX_ETCD_KEY_FILE	its key
 *	RDMABOX_ETCD_USER_FILE	a file with one line, user:password
 *
 * All are names of files, so that no secret is in the environment or on a command line,
 * where others may see it. Those with secrets must give no rights to others. A password is
 * not sent without TLS, but to this machine.
 */
#ifndef RBX_ETCD_SETTINGS_H
#define RBX_ETCD_SETTINGS_H

#include <limits.h>
#include <stdbool.h>

#define ETCD_USER_BYTES 512 /* "user:password" and its NUL */

struct etcd_settings {
	char ca_file[PATH_MAX]; /* "": none, as all of these */
	char cert_file[PATH_MAX];
	char key_file[PATH_MAX];
	char user[ETCD_USER_BYTES]; /* the name; the password is behind its NUL */
	const char *password; /* in it */
};

/* 0; -EINVAL, -ENOENT, -EACCES or -EPERM, with one line in error. */
int etcd_settings_read(struct etcd_settings *settings, const char *endpoints,
		       bool is_encrypted, char *error);

#endif
