/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * secret.c - see secret.h.
 *
 * The file must not be readable by others than its owner and group: a secret
 * that everybody on the machine can read is none, and saying so at the start is
 * kinder than failing an audit later. Copies of secrets are wiped when they are
 * done with.
 *
 * All proofs are HMAC-SHA256(root, label || transcript || more) with a label
 * of its own for each use, ended by a zero byte, so that no proof can be taken
 * for another one.
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
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "lib/error.h"

/* Returns how many bytes were read, at most size, or -errno. */
static ssize_t read_all(int fd, uint8_t *buf, size_t size)
{
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

static int secret_read(int fd, const char *path, struct rbx_secret *secret)
{
	/* One byte for a newline, one to notice what is too long. */
	uint8_t bytes[RBX_SECRET_BYTES_MAX + 2];
	ssize_t n = read_all(fd, bytes, sizeof(bytes));

	if (n < 0)
		return rbx_error((int)n, "cannot read secret file %s: %s", path,
				 strerror((int)-n));
	if (n > 0 && bytes[n - 1] == '\n')
		n--;
	if (n >= RBX_SECRET_BYTES_MIN && n <= RBX_SECRET_BYTES_MAX) {
		memcpy(secret->bytes, bytes, (size_t)n);
		secret->length_bytes = (size_t)n;
	}
	OPENSSL_cleanse(bytes, sizeof(bytes));
	if (!secret->length_bytes)
		return rbx_error(-EINVAL,
				 "secret file %s is too %s: a secret has %u to "
				 "%u bytes; make one with: head -c 32 /dev/urandom"
				 " | base64",
				 path,
				 n < RBX_SECRET_BYTES_MIN ? "short" : "long",
				 RBX_SECRET_BYTES_MIN, RBX_SECRET_BYTES_MAX);
	return 0;
}

static int secret_check_file(int fd, const char *path)
{
	struct stat status;

	if (fstat(fd, &status))
		return rbx_error(-errno, "cannot look at secret file %s: %s",
				 path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return rbx_error(-EINVAL, "secret file %s is not a file", path);
	if (status.st_mode & S_IRWXO)
		return rbx_error(-EACCES,
				 "secret file %s is open to everybody (mode %o); "
				 "close it with: chmod o-rwx %s",
				 path, status.st_mode & 07777, path);
	return 0;
}

int rbx_secret_load(const char *path, struct rbx_secret **out)
{
	struct rbx_secret *secret;
	int fd, err;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return rbx_error(-errno, "cannot open secret file %s: %s", path,
				 strerror(errno));
	secret = calloc(1, sizeof(*secret));
	if (!secret) {
		err = rbx_error(-ENOMEM, "no memory for the secret");
		goto out_close;
	}
	err = secret_check_file(fd, path);
	if (!err)
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

/* ---- Proofs ------------------------------------------------------------------*/

void rbx_transcript_make(struct rbx_transcript *transcript,
			 const struct rbx_wire_message *hello,
			 const struct rbx_wire_message *challenge)
{
	size_t hello_bytes;

	RBX_ASSERT(hello->type == RBX_WIRE_HELLO);
	RBX_ASSERT(challenge->type == RBX_WIRE_CHALLENGE);
	hello_bytes = rbx_wire_encode(hello, transcript->bytes);
	transcript->length_bytes =
		hello_bytes +
		rbx_wire_encode(challenge, transcript->bytes + hello_bytes);
}

struct rbx_root rbx_root_of_secret(const struct rbx_secret *secret)
{
	/* Without secret the key is empty; the pointer must not be NULL. */
	if (!secret)
		return (struct rbx_root){ (const uint8_t *)"", 0 };
	return (struct rbx_root){ secret->bytes, secret->length_bytes };
}

struct rbx_root rbx_root_of_key(const struct rbx_key *key)
{
	return (struct rbx_root){ key->bytes, sizeof(key->bytes) };
}

#define LABEL_BYTES_MAX 32

static void prove(struct rbx_root root, const char *label,
		  const struct rbx_transcript *transcript, const uint8_t *more,
		  size_t more_bytes, uint8_t proof[RBX_WIRE_PROOF_BYTES])
{
	uint8_t text[LABEL_BYTES_MAX + sizeof(transcript->bytes) +
		     RBX_WIRE_MESSAGE_BYTES_MAX];
	size_t length_bytes = strlen(label) + 1;
	unsigned int proof_bytes = 0;

	RBX_ASSERT(length_bytes <= LABEL_BYTES_MAX);
	RBX_ASSERT(more_bytes <= RBX_WIRE_MESSAGE_BYTES_MAX);
	memcpy(text, label, length_bytes);
	if (transcript) {
		memcpy(text + length_bytes, transcript->bytes,
		       transcript->length_bytes);
		length_bytes += transcript->length_bytes;
	}
	if (more_bytes)
		memcpy(text + length_bytes, more, more_bytes);
	length_bytes += more_bytes;
	if (!HMAC(EVP_sha256(), root.bytes, (int)root.length_bytes, text,
		  length_bytes, proof, &proof_bytes) ||
	    proof_bytes != RBX_WIRE_PROOF_BYTES)
		abort(); /* an unproved peer must never pass for a proved one */
}

void rbx_proof_of_client(struct rbx_root root,
			 const struct rbx_transcript *transcript,
			 uint8_t proof[RBX_WIRE_PROOF_BYTES])
{
	prove(root, "rdmabox client proof", transcript, NULL, 0, proof);
}

void rbx_proof_of_server(struct rbx_root root,
			 const struct rbx_transcript *transcript,
			 const struct rbx_wire_message *welcome,
			 uint8_t proof[RBX_WIRE_PROOF_BYTES])
{
	struct rbx_wire_message unproved = *welcome;
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];
	size_t length_bytes;

	RBX_ASSERT(welcome->type == RBX_WIRE_WELCOME);
	memset(unproved.welcome.proof, 0, sizeof(unproved.welcome.proof));
	length_bytes = rbx_wire_encode(&unproved, bytes);
	prove(root, "rdmabox server proof", transcript, bytes, length_bytes,
	      proof);
}

void rbx_key_of_session(struct rbx_root root,
			const struct rbx_transcript *transcript,
			struct rbx_key *key)
{
	prove(root, "rdmabox session key", transcript, NULL, 0, key->bytes);
}

void rbx_key_of_connection(struct rbx_root root,
			   const struct rbx_transcript *transcript,
			   struct rbx_key *key)
{
	prove(root, "rdmabox connection key", transcript, NULL, 0, key->bytes);
}

void rbx_proof_of_attach(const struct rbx_key *connection_key,
			 const struct rbx_wire_attach *attach,
			 uint8_t mac[RBX_WIRE_MAC_BYTES])
{
	uint8_t bytes[RBX_WIRE_ATTACH_BYTES];
	uint8_t proof[RBX_WIRE_PROOF_BYTES];

	rbx_wire_attach_encode(attach, bytes);
	prove(rbx_root_of_key(connection_key), "rdmabox queue pair", NULL,
	      bytes, RBX_WIRE_ATTACH_SIGNED_BYTES, proof);
	memcpy(mac, proof, RBX_WIRE_MAC_BYTES);
}

bool rbx_proof_equal(const uint8_t *a, const uint8_t *b, size_t length_bytes)
{
	return CRYPTO_memcmp(a, b, length_bytes) == 0;
}

int rbx_random(void *buf, size_t length_bytes)
{
	/* Up to 256 bytes come whole and uninterrupted. */
	RBX_ASSERT(length_bytes <= 256);
	if (getrandom(buf, length_bytes, 0) != (ssize_t)length_bytes)
		return rbx_error(-EIO, "the kernel gives no random bytes");
	return 0;
}
