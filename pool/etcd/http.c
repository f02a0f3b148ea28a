/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * http.c - requests to the endpoints of etcd, see http.h.
 *
 * libcurl's "multi" is driven by the one thread that uses the store. It waits in
 * curl_multi_poll(), with stop_fd as one more descriptor: so an endpoint that hangs holds
 * up nobody who wants to end.
 */
#include "pool/etcd/http.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"

#define TELL(...) snprintf(http->error, RBX_STORE_ERROR_BYTES, __VA_ARGS__)

static const char *endpoint(const struct etcd_http *http)
{
	return http->endpoints[http->endpoint];
}

/* ---- A transfer ---------------------------------------------------------------------*/

static size_t body_add(char *bytes, size_t one, size_t length, void *user)
{
	struct etcd_body *body = user;

	(void)one;
	if (length > ETCD_ANSWER_BYTES_MAX - body->length) {
		body->is_too_long = true;
		return 0; /* libcurl ends the transfer */
	}
	if (body->length + length > body->room) {
		size_t room = 2 * (body->length + length);
		char *larger = realloc(body->bytes, room);

		if (!larger)
			return 0;
		body->bytes = larger;
		body->room = room;
	}
	memcpy(body->bytes + body->length, bytes, length);
	body->length += length;
	return length;
}

static int headers_make(struct etcd_http *http)
{
	char authorization[ETCD_TOKEN_BYTES + 32];
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json"), *more;

	more = curl_slist_append(headers, "Expect:"); /* no wait for 100 Continue */
	if (more && *http->token) {
		snprintf(authorization, sizeof(authorization), "Authorization: %s", http->token);
		more = curl_slist_append(headers, authorization);
	}
	curl_slist_free_all(http->headers);
	http->headers = headers;
	return more ? 0 : -ENOMEM;
}

static void tls_set(const struct etcd_http *http, CURL *easy)
{
	const struct etcd_settings *settings = &http->settings;

	if (*settings->ca_file)
		curl_easy_setopt(easy, CURLOPT_CAINFO, settings->ca_file);
	if (*settings->cert_file)
		curl_easy_setopt(easy, CURLOPT_SSLCERT, settings->cert_file);
	if (*settings->key_file)
		curl_easy_setopt(easy, CURLOPT_SSLKEY, settings->key_file);
	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
}

/* Begins it. The JSON is borrowed until its end. */
static int transfer_begin(struct etcd_http *http, struct etcd_transfer *transfer,
			  const char *path, const char *json, long timeout_ms)
{
	char url[RBX_STORE_ERROR_BYTES];
	CURL *easy = curl_easy_init();

	if (!easy)
		return -ENOMEM;
	snprintf(url, sizeof(url), "%s://%s%s", http->is_encrypted ? "https" : "http",
		 endpoint(http), path);
	transfer->body.length = transfer->body.taken = 0;
	transfer->body.is_too_long = false;
	transfer->is_over = false;
	transfer->error[0] = '\0';
	transfer->easy = easy;
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	/* A resolver that hangs is left to itself. */
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, json);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, http->headers);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)ETCD_CONNECT_MS);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body_add);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer->body);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
	tls_set(http, easy);
	if (curl_multi_add_handle(http->multi, easy)) {
		curl_easy_cleanup(easy);
		transfer->easy = NULL;
		return -ENOMEM;
	}
	return 0;
}

static void transfer_end(struct etcd_http *http, struct etcd_transfer *transfer)
{
	if (!transfer->easy)
		return;
	curl_multi_remove_handle(http->multi, transfer->easy);
	curl_easy_cleanup(transfer->easy);
	transfer->easy = NULL;
}

/* Lets the transfers go on, and waits for something to happen until then at most. 0,
 * -ETIMEDOUT or -ECANCELED. */
static int transfers_run(struct etcd_http *http, uint64_t until_ns)
{
	struct curl_waitfd stop = { .fd = http->stop_fd, .events = CURL_WAIT_POLLIN };
	uint64_t now_ns = rbx_now_ns();
	struct etcd_transfer *transfer;
	int running, left;
	CURLMsg *message;

	curl_multi_perform(http->multi, &running);
	while ((message = curl_multi_info_read(http->multi, &left))) {
		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
		transfer->is_over = true;
		transfer->result = message->data.result;
	}
	if (http->request.is_over || http->stream.is_over)
		until_ns = now_ns; /* only to see stop_fd */
	curl_multi_poll(http->multi, &stop, 1,
			until_ns > now_ns ? (int)((until_ns - now_ns) / 1000000u) + 1 : 0, NULL);
	if (stop.revents)
		return -ECANCELED;
	return until_ns > now_ns ? 0 : -ETIMEDOUT;
}

/* ---- What a result means ------------------------------------------------------------*/

static int result_error(struct etcd_http *http, const struct etcd_transfer *transfer)
{
	const char *why = *transfer->error ? transfer->error :
					     curl_easy_strerror(transfer->result);
	curl_off_t connected = 0;

	if (transfer->body.is_too_long) {
		TELL("etcd at %s: an answer of more than %u bytes", endpoint(http),
		     ETCD_ANSWER_BYTES_MAX);
		return -EFBIG;
	}
	curl_easy_getinfo(transfer->easy, CURLINFO_PRETRANSFER_TIME_T, &connected);
	if (!connected) { /* so nothing was sent */
		TELL("etcd at %s: %.200s; is an etcd running there?", endpoint(http), why);
		return -EHOSTUNREACH;
	}
	TELL("etcd at %s: %.200s", endpoint(http), why);
	return transfer->result == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT : -EPROTO;
}

static int code_error(int code)
{
	switch (code) {
	case ETCD_NOT_FOUND:
		return -ENOENT;
	case ETCD_PERMISSION_DENIED:
	case ETCD_UNAUTHENTICATED:
		return -EPERM;
	case ETCD_OUT_OF_RANGE:
		return -ESTALE;
	default:
		return -EREMOTEIO;
	}
}

/* What etcd itself says in an answer that is no success. */
static int status_error(struct etcd_http *http, const struct etcd_transfer *transfer,
			long status)
{
	struct etcd_bytes body = { transfer->body.bytes, transfer->body.length };
	char said[RBX_STORE_ERROR_BYTES];
	int code = etcd_answer_failure(body, said);

	if (code < 0 && status == 400 && body.length &&
	    memmem(body.bytes, body.length, "CommonName", strlen("CommonName"))) {
		TELL("etcd at %s: as it has users, it takes no certificate of a client with a CommonName: give one without to RDMABOX_ETCD_CERT_FILE",
		     endpoint(http));
		return -EPERM;
	}
	if (code < 0) {
		TELL("etcd at %s: it answers with HTTP status %ld: is this an etcd of version 3.4 or later?",
		     endpoint(http), status);
		return status >= 500 ? -EREMOTEIO : status == 401 ? -EPERM : -EPROTO;
	}
	TELL("etcd at %s: %.200s", endpoint(http), said);
	if (code == ETCD_INVALID_ARGUMENT && strstr(said, "user name is empty")) {
		TELL("etcd at %s: it wants a user: name a file with user:password in RDMABOX_ETCD_USER_FILE",
		     endpoint(http));
		return -EPERM;
	}
	if (code == ETCD_INVALID_ARGUMENT && strstr(said, "authentication failed"))
		return -EPERM;
	return code_error(code);
}

static int transfer_error(struct etcd_http *http, const struct etcd_transfer *transfer)
{
	long status = 0;

	if (transfer->result)
		return result_error(http, transfer);
	curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
	return status == 200 ? 0 : status_error(http, transfer, status);
}

/* ---- Requests ------------------------------------------------------------------------*/

/* To the endpoint in use. */
static int post_once(struct etcd_http *http, const char *path, const char *json)
{
	struct etcd_transfer *request = &http->request;
	uint64_t until_ns = rbx_after_ms(2 * ETCD_ANSWER_MS);
	int err = transfer_begin(http, request, path, json, ETCD_ANSWER_MS);

	if (err) {
		TELL("out of memory");
		return err;
	}
	do {
		err = transfers_run(http, until_ns);
	} while (!err && !request->is_over);
	if (request->is_over)
		err = transfer_error(http, request);
	else if (err == -ECANCELED)
		TELL("etcd at %s: no more is wanted", endpoint(http));
	else
		TELL("etcd at %s: no answer in time", endpoint(http));
	transfer_end(http, request);
	request->is_over = false;
	return err;
}

/* The next endpoint may do better, and the request may go there. */
static bool may_go_on(int err, bool may_repeat)
{
	if (err == -EHOSTUNREACH)
		return true;
	return may_repeat && (err == -ETIMEDOUT || err == -EPROTO || err == -EREMOTEIO);
}

static int post_anywhere(struct etcd_http *http, const char *path, const char *json,
			 bool may_repeat)
{
	uint64_t until_ns = rbx_after_ms(ETCD_CALL_MS - ETCD_ANSWER_MS);
	unsigned int tries;
	int err;

	for (tries = 1;; tries++) {
		err = post_once(http, path, json);
		if (!may_go_on(err, may_repeat))
			return err;
		http->endpoint = (http->endpoint + 1) % http->endpoint_count;
		if (tries == http->endpoint_count || rbx_now_ns() > until_ns)
			return err;
	}
}

int etcd_http_answered(struct etcd_http *http, int err)
{
	static const char begin[] = "etcd: ";
	const size_t begin_bytes = sizeof(begin) - 1;
	char what[RBX_STORE_ERROR_BYTES];

	if ((err != -EPROTO && err != -ENOSPC) || strncmp(http->error, begin, begin_bytes) != 0)
		return err;
	snprintf(what, sizeof(what), "%s", http->error + begin_bytes);
	TELL("etcd at %s: %.200s", endpoint(http), what);
	return err;
}

static int token_get(struct etcd_http *http)
{
	json_t *json = json_pack("{ss ss}", "name", http->settings.user, "password",
				 http->settings.password);
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	struct etcd_bytes body;
	int err;

	json_decref(json);
	http->token[0] = '\0';
	if (!text || headers_make(http)) {
		free(text);
		TELL("RDMABOX_ETCD_USER_FILE: user and password are no UTF-8");
		return -EINVAL;
	}
	err = post_anywhere(http, "/v3/auth/authenticate", text, true);
	explicit_bzero(text, strlen(text));
	free(text);
	if (err)
		return err;
	body = (struct etcd_bytes){ http->request.body.bytes, http->request.body.length };
	err = etcd_http_answered(http, etcd_answer_token(body, http->token, http->error));
	return err ? err : headers_make(http);
}

int etcd_http_post(struct etcd_http *http, const char *path, const char *json,
		   bool may_repeat)
{
	bool has_user = *http->settings.user, had_token = *http->token;
	int err = has_user && !had_token ? token_get(http) : 0;

	if (err)
		return err;
	err = post_anywhere(http, path, json, may_repeat);
	/* A token that nobody used for minutes has run out. Nothing was done then. */
	if (err == -EPERM && had_token) {
		err = token_get(http);
		if (!err)
			err = post_anywhere(http, path, json, may_repeat);
	}
	return err;
}

/* ---- The stream ----------------------------------------------------------------------*/

int etcd_http_stream(struct etcd_http *http, const char *path, char *json)
{
	int err;

	etcd_http_stream_end(http);
	http->stream_request = json;
	err = transfer_begin(http, &http->stream, path, json, 0);
	if (err)
		TELL("out of memory");
	return err;
}

void etcd_http_stream_end(struct etcd_http *http)
{
	transfer_end(http, &http->stream);
	http->stream.is_over = false;
	free(http->stream_request);
	http->stream_request = NULL;
}

static bool line_is_there(const struct etcd_body *body, struct etcd_bytes *line)
{
	size_t length = body->length - body->taken;
	const char *begin, *end;

	/* Before the first byte has come there is no buffer to point into. */
	if (!length)
		return false;
	begin = body->bytes + body->taken;
	end = memchr(begin, '\n', length);
	*line = (struct etcd_bytes){ begin, end ? (size_t)(end - begin) : 0 };
	return end;
}

/* Once for all lines that have come together: there may be very many of them. */
static void taken_drop(struct etcd_body *body)
{
	body->length -= body->taken;
	if (body->taken)
		memmove(body->bytes, body->bytes + body->taken, body->length);
	body->taken = 0;
}

static bool is_told_to_end(const struct etcd_http *http)
{
	struct pollfd stop = { .fd = http->stop_fd, .events = POLLIN };

	return poll(&stop, 1, 0) > 0;
}

int etcd_http_stream_line(struct etcd_http *http, uint32_t timeout_ms,
			  struct etcd_bytes *line)
{
	struct etcd_transfer *stream = &http->stream;
	uint64_t until_ns = rbx_after_ms(timeout_ms);
	int err = 0;

	/* Before any line: an endpoint may send them faster than they are taken. */
	if (is_told_to_end(http))
		return -ECANCELED;
	while (!line_is_there(&stream->body, line)) {
		if (stream->is_over) {
			err = transfer_error(http, stream);
			if (err)
				return err;
			TELL("etcd at %s: it ended the watch", endpoint(http));
			return -EPROTO;
		}
		if (err)
			return err == -ETIMEDOUT ? -EAGAIN : err;
		taken_drop(&stream->body);
		err = transfers_run(http, until_ns);
	}
	return 0;
}

void etcd_http_stream_took(struct etcd_http *http, struct etcd_bytes line)
{
	http->stream.body.taken += line.length + 1;
}

/* ---- Open and close --------------------------------------------------------------------*/

int etcd_http_open(struct etcd_http *http, const struct rbx_store_place *place, char *error)
{
	char *rest, *one;

	http->error = error;
	http->stop_fd = place->stop_fd;
	http->is_encrypted = place->is_encrypted;
	http->multi = curl_multi_init();
	http->endpoints_text = strdup(place->endpoints);
	if (!http->multi || !http->endpoints_text || headers_make(http)) {
		TELL("out of memory");
		return -ENOMEM;
	}
	rest = http->endpoints_text;
	while ((one = strsep(&rest, ","))) {
		if (http->endpoint_count == ETCD_ENDPOINTS_MAX) {
			TELL("etcd: more than %u endpoints", ETCD_ENDPOINTS_MAX);
			return -EINVAL;
		}
		http->endpoints[http->endpoint_count++] = one;
	}
	return 0;
}

void etcd_http_close(struct etcd_http *http)
{
	etcd_http_stream_end(http);
	if (http->multi)
		curl_multi_cleanup(http->multi);
	curl_slist_free_all(http->headers);
	free(http->request.body.bytes);
	free(http->stream.body.bytes);
	free(http->endpoints_text);
	explicit_bzero(&http->settings, sizeof(http->settings));
	explicit_bzero(http->token, sizeof(http->token));
}
