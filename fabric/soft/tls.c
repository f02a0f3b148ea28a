/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tls.c - one connection under TLS 1.3, by OpenSSL.
 *
 * OpenSSL writes and reads one record at a time; a system call for each of 16 KiB would cost
 * more than its encryption. So it gets a BIO of ours. What it writes is gathered in `out`,
 * and one send() takes up to eight records from there. What it reads comes by one recv(), of
 * which OpenSSL keeps the rest (its read-ahead).
 *
 * `out` always has room for the records that are encrypted at a time, so OpenSSL never
 * finds it full, and no call has to be repeated with the same bytes, as OpenSSL wants it
 * otherwise. The exception is a peer that asks for new keys faster than it reads: such a
 * connection ends.
 *
 * Bytes are copied before they are encrypted, by the system, which finds addresses that are
 * no memory (checked_copy.h). The peer's bytes are copied out of the look-ahead (receive.c).
 *
 * No close_notify is sent. In the protocol above, the end of a connection is never the end of
 * data: what was not acknowledged has failed, whoever cut the connection.
 *
 * Memory is allocated when the connection is made, and by OpenSSL in its handshake and for a
 * new key, once in SOFT_TLS_RECORDS_MAX records, not for other records.
 */
#include "tls.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "checked_copy.h"
#include "limits.h"
#include "tls_keys.h"

struct soft_tls {
	SSL *ssl;
	int fd;
	bool streams; /* messages are over */
	bool may_read; /* streams: one recv() is left to this call */
	bool would_block; /* the last call of OpenSSL ended since there were no more bytes */
	bool socket_has_more; /* the last recv() was filled */
	bool has_ended; /* the socket has */
	bool unknown_identity;
	int error; /* errno of the socket; EBADMSG: of TLS. It stays. */
	uint32_t records; /* sent under the current key */
	size_t out_begin, out_end;
	char identity[RBX_TLS_IDENTITY_MAX];
	uint8_t out[SOFT_TLS_OUT_BYTES];
	uint8_t text[SOFT_TLS_SEND_BYTES]; /* what is encrypted next */
};

void soft_tls_unknown_identity(struct soft_tls *tls)
{
	tls->unknown_identity = true;
}

char *soft_tls_identity(struct soft_tls *tls)
{
	return tls->identity;
}

/* ---- The socket, as OpenSSL sees it ------------------------------------------------- */

/* OpenSSL's own word for it, SSL_want_read(), is true after an alert, too. */
static int read_blocks(struct soft_tls *tls, BIO *bio)
{
	tls->would_block = true;
	BIO_set_retry_read(bio);
	return -1;
}

static int socket_read(BIO *bio, char *bytes, int max_bytes)
{
	struct soft_tls *tls = BIO_get_data(bio);
	ssize_t got;

	BIO_clear_retry_flags(bio);
	if (tls->streams && !tls->may_read)
		return read_blocks(tls, bio);
	tls->may_read = false;
	do {
		got = recv(tls->fd, bytes, (size_t)max_bytes, MSG_DONTWAIT);
	} while (got < 0 && errno == EINTR);
	if (got > 0) {
		tls->socket_has_more = got == max_bytes;
	} else if (got == 0) {
		tls->has_ended = true;
	} else if (errno == EAGAIN) {
		return read_blocks(tls, bio);
	} else {
		tls->error = errno;
	}
	return (int)got;
}

static int out_write(BIO *bio, const char *bytes, int length)
{
	struct soft_tls *tls = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	if ((size_t)length > sizeof(tls->out) - tls->out_end)
		return -1;
	memcpy(tls->out + tls->out_end, bytes, (size_t)length);
	tls->out_end += (size_t)length;
	return length;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH; /* soft_tls_push() does it; all else we have not */
}

static pthread_once_t method_once = PTHREAD_ONCE_INIT;
static BIO_METHOD *method; /* for as long as the process lives */

static void method_make(void)
{
	method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "rdmabox");
	if (!method)
		return;
	BIO_meth_set_read(method, socket_read);
	BIO_meth_set_write(method, out_write);
	BIO_meth_set_ctrl(method, bio_control);
}

/* ---- Begin and end -------------------------------------------------------------------- */

static SSL *ssl_make(struct soft_tls_keys *keys, struct soft_tls *tls)
{
	BIO *bio;

	pthread_once(&method_once, method_make);
	bio = method ? BIO_new(method) : NULL;
	if (!bio)
		return NULL;
	BIO_set_data(bio, tls);
	BIO_set_init(bio, 1);
	return soft_tls_keys_connection(keys, bio, tls);
}

struct soft_tls *soft_tls_open(struct soft_tls_keys *keys, int fd, bool accepts)
{
	struct soft_tls *tls = malloc(sizeof(*tls));

	if (!tls)
		return NULL;
	memset(tls, 0, offsetof(struct soft_tls, out));
	tls->fd = fd;
	ERR_set_mark();
	tls->ssl = ssl_make(keys, tls);
	ERR_pop_to_mark();
	if (!tls->ssl) {
		free(tls);
		return NULL;
	}
	if (accepts) {
		SSL_set_accept_state(tls->ssl);
		return tls;
	}
	SSL_set_connect_state(tls->ssl);
	/* A server that has no key of ours might show a certificate. None is trusted. */
	SSL_set_verify(tls->ssl, SSL_VERIFY_PEER, NULL);
	return tls;
}

void soft_tls_free(struct soft_tls *tls)
{
	if (!tls)
		return;
	SSL_free(tls->ssl);
	OPENSSL_cleanse(tls->text, sizeof(tls->text));
	free(tls);
}

/* ---- Output ---------------------------------------------------------------------------- */

size_t soft_tls_unsent(const struct soft_tls *tls)
{
	return tls->out_end - tls->out_begin;
}

int soft_tls_push(struct soft_tls *tls)
{
	ssize_t sent;

	while (tls->out_begin != tls->out_end) {
		sent = send(tls->fd, tls->out + tls->out_begin, soft_tls_unsent(tls),
			    MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return -errno;
		tls->out_begin += (size_t)sent;
	}
	tls->out_begin = 0;
	tls->out_end = 0;
	return 0;
}

/* Encrypts one record at most. */
static int record_seal(struct soft_tls *tls, const uint8_t *bytes, size_t length_bytes)
{
	if (SSL_write(tls->ssl, bytes, (int)length_bytes) != (int)length_bytes)
		return -EPROTO;
	if (++tls->records < SOFT_TLS_RECORDS_MAX)
		return 0;
	tls->records = 0;
	return SSL_key_update(tls->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 &&
			       SSL_do_handshake(tls->ssl) == 1 ?
		       0 : -EPROTO;
}

static int records_seal(struct soft_tls *tls, size_t bytes)
{
	size_t at, length;
	int err = 0;

	ERR_set_mark();
	for (at = 0; at < bytes && !err; at += length) {
		length = bytes - at;
		if (length > SOFT_TLS_RECORD_BYTES)
			length = SOFT_TLS_RECORD_BYTES;
		err = record_seal(tls, tls->text + at, length);
	}
	ERR_pop_to_mark();
	return err;
}

ssize_t soft_tls_send(struct soft_tls *tls, const struct iovec *pieces, size_t count)
{
	ssize_t bytes = soft_checked_gather(tls->text, sizeof(tls->text), pieces, count);
	int err;

	if (bytes < 0)
		return -EFAULT;
	if (records_seal(tls, (size_t)bytes)) {
		/* The socket lives, but nothing can be sent any more. */
		shutdown(tls->fd, SHUT_RDWR);
		return -EPROTO;
	}
	err = soft_tls_push(tls);
	return err && err != -EAGAIN ? err : bytes;
}

int soft_tls_send_message(struct soft_tls *tls, const void *bytes, size_t length_bytes)
{
	const struct iovec piece = { (void *)bytes, length_bytes };
	ssize_t sent = soft_tls_send(tls, &piece, 1);

	if (sent < 0)
		return (int)sent;
	/* A fresh socket always has room. */
	return soft_tls_unsent(tls) ? -ECONNABORTED : 0;
}

/* ---- Input ----------------------------------------------------------------------------- */

void soft_tls_stream(struct soft_tls *tls)
{
	tls->streams = true;
	SSL_set_read_ahead(tls->ssl, 1);
}

/* Why SSL_read() has brought nothing, once it did not: -EAGAIN, 0 or -errno. */
static int read_status(struct soft_tls *tls)
{
	if (tls->error)
		return -tls->error;
	if (tls->has_ended || SSL_get_shutdown(tls->ssl) & SSL_RECEIVED_SHUTDOWN)
		return 0; /* an alert ends it, too */
	if (tls->would_block)
		return -EAGAIN;
	tls->error = EBADMSG;
	(void)soft_tls_push(tls); /* OpenSSL tells the peer */
	return -EBADMSG;
}

/*
 * What stops it is told now if there are no bytes before it, or if these are not the peer's
 * bytes: no event of the socket would cause another call. Otherwise the next call tells it.
 */
static ssize_t text_read(struct soft_tls *tls, uint8_t *to, size_t max_bytes)
{
	size_t got = 0;
	int rc, err;

	while (got < max_bytes) {
		rc = SSL_read(tls->ssl, to + got, (int)(max_bytes - got));
		if (rc > 0) {
			got += (size_t)rc;
			continue;
		}
		err = read_status(tls);
		return got && err != -EBADMSG ? (ssize_t)got : err;
	}
	return (ssize_t)got;
}

static ssize_t text_receive(struct soft_tls *tls, void *to, size_t max_bytes)
{
	ssize_t got;

	if (tls->error)
		return -tls->error;
	if (tls->has_ended)
		return 0;
	tls->would_block = false;
	ERR_set_mark();
	got = text_read(tls, to, max_bytes);
	ERR_pop_to_mark();
	return got;
}

ssize_t soft_tls_receive(struct soft_tls *tls, void *to, size_t max_bytes, bool *more)
{
	ssize_t got;

	tls->may_read = true;
	tls->socket_has_more = false;
	got = text_receive(tls, to, max_bytes);
	*more = tls->socket_has_more;
	return got;
}

ssize_t soft_tls_receive_message(struct soft_tls *tls, void *bytes, size_t max_bytes,
				 bool *more)
{
	ssize_t got = text_receive(tls, bytes, max_bytes);

	*more = SSL_pending(tls->ssl) > 0;
	return got;
}

/* ---- Handshake ----------------------------------------------------------------------- */

/* Whether it failed since the two sides do not have the same key. */
static bool keys_differ(const struct soft_tls *tls, unsigned long error)
{
	switch (ERR_GET_REASON(error)) {
	case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE: /* the acceptor does not know the identity */
	case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER: /* our proof does not hold for the acceptor */
	case SSL_R_TLSV1_ALERT_DECRYPT_ERROR: /* a proof does not hold: the peer says so, */
	case SSL_R_BINDER_DOES_NOT_VERIFY: /* or we */
	case SSL_R_DIGEST_CHECK_FAILED:
	case SSL_R_CERTIFICATE_VERIFY_FAILED: /* a server without our key */
		return true;
	default:
		return tls->unknown_identity;
	}
}

static int handshake_status(struct soft_tls *tls)
{
	if (tls->error)
		return -tls->error;
	if (tls->has_ended)
		return -ECONNRESET;
	if (tls->would_block)
		return -EAGAIN;
	return keys_differ(tls, ERR_peek_last_error()) ? -EACCES : -EPROTO;
}

int soft_tls_handshake(struct soft_tls *tls)
{
	int err, push_err;

	tls->would_block = false;
	ERR_set_mark();
	err = SSL_do_handshake(tls->ssl) == 1 ? 0 : handshake_status(tls);
	ERR_pop_to_mark();
	/* A fresh socket has room for all that is said. */
	push_err = soft_tls_push(tls);
	if (!err || err == -EAGAIN)
		err = push_err ? push_err : err;
	if (push_err == -EAGAIN)
		err = -ECONNABORTED;
	/* Nobody is who he claims to be who has not proved the key. */
	if (!err && !SSL_session_reused(tls->ssl))
		err = -EACCES;
	return err;
}
