/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* settings.c - how etcd is reached, see settings.h. */
#include "pool/etcd/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pool/store.h"

#define TELL(...) snprintf(error, RBX_STORE_ERROR_BYTES, __VA_ARGS__)

static int text_take(char *to, const char *variable, char *error)
{
	const char *value = secure_getenv(variable);

	if (!value)
		return 0;
	if (strlen(value) >= PATH_MAX) {
		TELL("%s: the name is too long", variable);
		return -EINVAL;
	}
	strcpy(to, value);
	return 0;
}

/* A file that is named has to be there: libcurl would only say that TLS fails. */
static int file_check(const char *path, bool is_secret, char *error)
{
	struct stat is;

	if (!*path)
		return 0;
	if (access(path, R_OK) || stat(path, &is)) {
		int err = -errno;

		TELL("%s: %s", path, strerror(-err));
		return err;
	}
	if (is_secret && is.st_mode & S_IRWXO) {
		TELL("%s: others may read it: chmod o= %s", path, path);
		return -EACCES;
	}
	return 0;
}

/* What is asked of the files of secrets (lib/secret.h). */
static int user_file_check(int fd, const char *path, char *error)
{
	struct stat is;

	if (fstat(fd, &is)) {
		int err = -errno;

		TELL("%s: %s", path, strerror(-err));
		return err;
	}
	if (!S_ISREG(is.st_mode)) {
		TELL("%s: it is not a file", path);
		return -EINVAL;
	}
	if (is.st_uid && is.st_uid != geteuid()) {
		TELL("%s: it belongs to another user (uid %u), who can change it: chown %u %s", path,
		     is.st_uid, geteuid(), path);
		return -EACCES;
	}
	if (is.st_mode & S_IRWXO) {
		TELL("%s: others may read or write it: chmod o= %s", path, path);
		return -EACCES;
	}
	return 0;
}

static int user_read(struct etcd_settings *settings, const char *path, char *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* nobody waits at a FIFO */
	int err = fd < 0 ? 0 : user_file_check(fd, path, error);
	ssize_t length = -1;
	char *colon;

	if (fd >= 0 && !err)
		length = read(fd, settings->user, sizeof(settings->user) - 1);
	if (!err && length < 0) {
		err = -errno;
		TELL("%s: %s", path, strerror(-err));
	}
	if (fd >= 0)
		close(fd);
	if (err)
		return err;
	settings->user[length] = '\0';
	settings->user[strcspn(settings->user, "\r\n")] = '\0';
	colon = strchr(settings->user, ':');
	if (!colon || colon == settings->user ||
	    strlen(settings->user) == sizeof(settings->user) - 1) {
		TELL("%s: a line user:password is wanted", path);
		return -EINVAL;
	}
	*colon = '\0';
	settings->password = colon + 1;
	return 0;
}

/* Whether each of "host:port,host:port" is this machine. */
static bool all_are_local(const char *endpoints)
{
	static const char *const local[] = { "127.", "localhost:", "[::1]:" };
	size_t i;

	for (; endpoints; endpoints = strchr(endpoints, ',')) {
		endpoints += *endpoints == ',';
		for (i = 0; i < 3; i++)
			if (!strncmp(endpoints, local[i], strlen(local[i])))
				break;
		/* "127.evil.example:1" begins so as well. */
		if (i == 3 || (!i && strspn(endpoints, "0123456789.") != strcspn(endpoints, ":")))
			return false;
	}
	return true;
}

int etcd_settings_read(struct etcd_settings *settings, const char *endpoints,
		       bool is_encrypted, char *error)
{
	char user_file[PATH_MAX] = "";
	int err;

	*settings = (struct etcd_settings){ .password = "" };
	err = text_take(settings->ca_file, "RDMABOX_ETCD_CA_FILE", error);
	if (!err)
		err = text_take(settings->cert_file, "RDMABOX_ETCD_CERT_FILE", error);
	if (!err)
		err = text_take(settings->key_file, "RDMABOX_ETCD_KEY_FILE", error);
	if (!err)
		err = text_take(user_file, "RDMABOX_ETCD_USER_FILE", error);
	if (!err && is_encrypted)
		err = file_check(settings->ca_file, false, error);
	if (!err && is_encrypted)
		err = file_check(settings->cert_file, false, error);
	if (!err && is_encrypted)
		err = file_check(settings->key_file, true, error);
	if (err || !*user_file)
		return err;
	if (!is_encrypted && !all_are_local(endpoints)) {
		TELL("etcd: a password is not sent without TLS: take etcds://, or unset RDMABOX_ETCD_USER_FILE");
		return -EPERM;
	}
	return user_read(settings, user_file, error);
}
