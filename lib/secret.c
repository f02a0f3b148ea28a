/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * secret.c - reads the secret, see secret.h.
 *
 * Everybody on the machine must not be able to read the file: such a secret protects
 * nothing, so it is refused at the start. So is one that belongs to somebody else than us or root,
 * who could put another secret in its place. Copies of secrets are wiped when they are no
 * longer needed.
 */
#include "lib/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "lib/error.h"

ssize_t rbx_secret_read(int fd, void *to, size_t size)
{
	uint8_t *buf = to;
	size_t have = 0;
	ssize_t n;

	while (have < size) {
		n = read(fd, buf + have, size - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

/* One byte again and again is what an empty disk or a careless hand leaves. */
static bool is_one_byte(const uint8_t *bytes, size_t length)
{
	return length && !memcmp(bytes, bytes + 1, length - 1);
}

RBX_STATIC_ASSERT(RBX_SECRET_BYTES_MIN == 16 && RBX_SECRET_BYTES_MAX == 4096,
		  "as the texts say");

const char *rbx_secret_wrong(const void *bytes, size_t length)
{
	if (length < RBX_SECRET_BYTES_MIN)
		return "is too short: a secret has 16 to 4096 bytes";
	if (length > RBX_SECRET_BYTES_MAX)
		return "is too long: a secret has 16 to 4096 bytes";
	if (is_one_byte(bytes, length))
		return "is one byte again and again, which is easy to guess";
	return NULL;
}

static int secret_read(int fd, const char *path, struct rbx_secret *secret)
{
	/* One byte more for a newline, and one more to notice that it is too long. */
	uint8_t bytes[RBX_SECRET_BYTES_MAX + 2];
	ssize_t n = rbx_secret_read(fd, bytes, sizeof(bytes));
	const char *wrong;

	if (n < 0)
		return rbx_error((int)n, "cannot read secret file %s: %s", path,
				 strerror((int)-n));
	if (n > 0 && bytes[n - 1] == '\n')
		n--;
	wrong = rbx_secret_wrong(bytes, (size_t)n);
	if (!wrong) {
		memcpy(secret->bytes, bytes, (size_t)n);
		secret->length_bytes = (size_t)n;
	}
	OPENSSL_cleanse(bytes, sizeof(bytes));
	if (wrong)
		return rbx_error(-EINVAL,
				 "secret file %s %s; make one with: head -c 32 "
				 "/dev/urandom | base64",
				 path, wrong);
	return 0;
}

static int secret_check_file(int fd, const char *path, uint64_t *file_bytes)
{
	struct stat status;

	if (fstat(fd, &status))
		return rbx_error(-errno, "cannot examine secret file %s: %s",
				 path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return rbx_error(-EINVAL, "secret file %s is not a file", path);
	if (status.st_uid && status.st_uid != geteuid())
		return rbx_error(-EACCES,
				 "secret file %s belongs to another user (uid %u), who can change "
				 "it; take it over with: chown %u %s",
				 path, status.st_uid, geteuid(), path);
	if (status.st_mode & S_IRWXO)
		return rbx_error(-EACCES,
				 "secret file %s is open to everybody (mode %o); "
				 "close it with: chmod o-rwx %s",
				 path, status.st_mode & 07777, path);
	*file_bytes = (uint64_t)status.st_size;
	return 0;
}

int rbx_secret_open(const char *path, uint64_t *file_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;

	if (fd < 0)
		return rbx_error(-errno, "cannot open secret file %s: %s", path,
				 strerror(errno));
	err = secret_check_file(fd, path, file_bytes);
	if (!err)
		return fd;
	close(fd);
	return err;
}

int rbx_secret_load(const char *path, struct rbx_secret **out)
{
	struct rbx_secret *secret;
	uint64_t file_bytes;
	int fd = rbx_secret_open(path, &file_bytes), err;

	if (fd < 0)
		return fd;
	secret = calloc(1, sizeof(*secret));
	if (!secret) {
		err = rbx_error(-ENOMEM, "no memory for the secret");
		goto out_close;
	}
	err = secret_read(fd, path, secret);
	if (err)
		rbx_secret_free(secret);
	else
		*out = secret;
out_close:
	close(fd);
	return err;
}

void rbx_secret_free(struct rbx_secret *secret)
{
	if (!secret)
		return;
	OPENSSL_cleanse(secret, sizeof(*secret));
	free(secret);
}

struct rbx_root rbx_root_of_secret(const struct rbx_secret *secret)
{
	/* Without a secret the key is empty, but the pointer must not be NULL. */
	if (!secret)
		return (struct rbx_root){ (const uint8_t *)"", 0 };
	return (struct rbx_root){ secret->bytes, secret->length_bytes };
}

int rbx_random(void *buf, size_t length_bytes)
{
	/* Up to 256 bytes come complete and uninterrupted. */
	RBX_ASSERT(length_bytes <= 256);
	if (getrandom(buf, length_bytes, 0) != (ssize_t)length_bytes)
		return rbx_error(-EIO, "the kernel has no random bytes");
	return 0;
}
