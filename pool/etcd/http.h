/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * http.h - requests to the endpoints of etcd, by libcurl: each with a bounded time and a
 * bounded answer, and one stream beside them, for the watch.
 *
 * One endpoint is used until it fails, and then the next one. Redirects are not followed
 * and no proxy is used: an endpoint is where the pool says it is.
 */
#ifndef RBX_ETCD_HTTP_H
#define RBX_ETCD_HTTP_H

#include <curl/curl.h>

#include "pool/etcd/answer.h"
#include "pool/etcd/settings.h"

/* 1024 entries of 1 KiB in base64, and room. Of the stream: what was not looked at yet. */
#define ETCD_ANSWER_BYTES_MAX (2u << 20)
#define ETCD_ENDPOINTS_MAX 16
#define ETCD_CONNECT_MS 2000
#define ETCD_ANSWER_MS 4000
#define ETCD_CALL_MS 12000 /* of all endpoints together */

/* The body of an answer, as far as it has come. */
struct etcd_body {
	char *bytes;
	size_t length;
	size_t taken; /* of a stream: lines that were taken, at its beginning */
	size_t room;
	bool is_too_long;
};

struct etcd_transfer {
	CURL *easy; /* NULL: there is none */
	struct etcd_body body;
	bool is_over;
	CURLcode result; /* when it is over */
	char error[CURL_ERROR_SIZE];
};

struct etcd_http {
	CURLM *multi;
	int stop_fd;
	bool is_encrypted;
	struct etcd_settings settings;
	char *endpoints_text; /* with NULs for commas; what follows points into it */
	const char *endpoints[ETCD_ENDPOINTS_MAX];
	unsigned int endpoint_count;
	unsigned int endpoint; /* the one in use */
	char token[ETCD_TOKEN_BYTES]; /* "": none */
	struct curl_slist *headers; /* with the token */
	struct etcd_transfer request;
	struct etcd_transfer stream;
	char *stream_request; /* borrowed by the transfer */
	char *error; /* RBX_STORE_ERROR_BYTES, of the store */
};

/* http was zeroed. The settings have been read. 0, -EINVAL or -ENOMEM. */
int etcd_http_open(struct etcd_http *http, const struct rbx_store_place *place, char *error);
void etcd_http_close(struct etcd_http *http);

/*
 * Posts JSON to a path and waits for the answer: in request.body, until the next one.
 * may_repeat: it does no harm twice, so another endpoint is tried whatever happened to the
 * first. 0, or an error of store.h; -ENOENT: etcd says so.
 */
int etcd_http_post(struct etcd_http *http, const char *path, const char *json,
		   bool may_repeat);

/* The answer was read with this result (answer.h): names its endpoint in the error. Returns err. */
int etcd_http_answered(struct etcd_http *http, int err);

/* Begins a stream at the endpoint in use. Takes `json`. 0 or -ENOMEM. */
int etcd_http_stream(struct etcd_http *http, const char *path, char *json);
void etcd_http_stream_end(struct etcd_http *http);
/* Waits until the stream has a whole line, for so long at most: *line, without its end, is
 * valid until etcd_http_stream_took(). 0; -EAGAIN: there is none; else as post(); -ECANCELED
 * even if there is one. */
int etcd_http_stream_line(struct etcd_http *http, uint32_t timeout_ms,
			  struct etcd_bytes *line);
void etcd_http_stream_took(struct etcd_http *http, struct etcd_bytes line);

#endif
