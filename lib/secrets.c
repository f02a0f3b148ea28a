/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * secrets.c - reads the file of secrets, see secrets.h.
 *
 * The file is read once, into memory that is kept out of core files and wiped at the end. The
 * table has an entry for each line, which points into that memory. It is sorted by name, so a
 * name is found by bisection.
 *
 * A line is checked in the order in which it is read. An error names the line and the cause.
 * It does not repeat the line: a user may have put the secret first.
 */
#include "lib/secrets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "include/rdmabox/rdmabox.h"
#include "lib/error.h"
#include "lib/secret.h"

#define QUOTA "quota="
#define VOLUMES "volumes="
#define ADMIN "admin"
#define TERM_TEXT_BYTES 32u /* "18446744073709551615" and more */

/* As long as all lines can be, and as much again for comments. */
#define LINE_BYTES_MAX                                                                  \
	(RBX_CREDENTIAL_BYTES + sizeof("," QUOTA "," VOLUMES "," ADMIN ":\n") + 2 * TERM_TEXT_BYTES +    \
	 RBX_SECRET_BYTES_MAX)
#define FILE_BYTES_MAX (2 * RBX_CREDENTIALS_MAX * LINE_BYTES_MAX)

struct entry {
	char name[RBX_CREDENTIAL_BYTES];
	const char *secret;
	uint32_t secret_bytes;
	uint32_t line;
	struct rbx_credential_terms terms;
};

struct rbx_secrets {
	char *text; /* mapped */
	size_t text_bytes; /* of the mapping */
	uint32_t count;
	struct entry entries[RBX_CREDENTIALS_MAX];
};

/* A line, and where it stands. */
struct line {
	const char *path;
	uint32_t number;
	const char *text;
	size_t length;
	uint64_t quota_min_bytes;
};

static int refuse(const struct line *line, const char *why)
{
	return rbx_error(-EINVAL, "%s:%u: %s", line->path, line->number, why);
}

/* ---- A line -----------------------------------------------------------------*/

/* What stands behind the "=" of a term, as a text of its own; or NULL: it is too long, or has a
 * zero byte. */
static const char *term_copy(const char *text, size_t length, char copy[TERM_TEXT_BYTES])
{
	if (length >= TERM_TEXT_BYTES || memchr(text, '\0', length))
		return NULL;
	memcpy(copy, text, length);
	copy[length] = '\0';
	return copy;
}

static int quota_take(const struct line *line, const char *text, size_t length,
		      struct rbx_credential_terms *terms)
{
	char copy[TERM_TEXT_BYTES];

	if (terms->quota_bytes)
		return refuse(line, "the quota is given twice");
	if (!term_copy(text, length, copy) || rbx_size_parse(copy, &terms->quota_bytes))
		return refuse(line, "the quota is no size, such as 64G");
	if (terms->quota_bytes < line->quota_min_bytes)
		return refuse(line, "the quota is less than one slab: nobody could borrow anything");
	return 0;
}

static int volumes_take(const struct line *line, const char *text, size_t length,
			struct rbx_credential_terms *terms)
{
	char copy[TERM_TEXT_BYTES], *end;
	unsigned long count;

	if (terms->volumes_max != RBX_VOLUMES_NOT_SAID)
		return refuse(line, "the number of volumes is given twice");
	if (!term_copy(text, length, copy) || copy[0] < '0' || copy[0] > '9')
		return refuse(line, "the number of volumes is no number, such as 64");
	count = strtoul(copy, &end, 10);
	if (*end)
		return refuse(line, "the number of volumes is no number, such as 64");
	if (count > RBX_KEPT_VOLUMES_MAX)
		return refuse(line, "more volumes than the 1024 that a server keeps");
	terms->volumes_max = (uint32_t)count;
	return 0;
}

static bool begins_with(const char *text, size_t length, const char *with)
{
	return length >= strlen(with) && !memcmp(text, with, strlen(with));
}

static int term_take(const struct line *line, const char *text, size_t length,
		     struct rbx_credential_terms *terms)
{
	const size_t quota = sizeof(QUOTA) - 1, volumes = sizeof(VOLUMES) - 1;

	if (begins_with(text, length, QUOTA))
		return quota_take(line, text + quota, length - quota, terms);
	if (begins_with(text, length, VOLUMES))
		return volumes_take(line, text + volumes, length - volumes, terms);
	if (length != sizeof(ADMIN) - 1 || !begins_with(text, length, ADMIN))
		return refuse(line, "only quota=SIZE, volumes=N and admin may stand between a name and its colon");
	if (terms->is_admin)
		return refuse(line, "admin is given twice");
	terms->is_admin = true;
	return 0;
}

/* Each begins with a comma. */
static int terms_take(const struct line *line, const char *text, const char *end,
		      struct rbx_credential_terms *terms)
{
	const char *term, *term_end;
	int err = 0;

	*terms = (struct rbx_credential_terms){ .volumes_max = RBX_VOLUMES_NOT_SAID };
	for (; !err && text < end; text = term_end) {
		term = text + 1;
		term_end = memchr(term, ',', (size_t)(end - term)) ?: end;
		err = term_take(line, term, (size_t)(term_end - term), terms);
	}
	return err;
}

static int name_take(const struct line *line, size_t name_bytes, struct entry *entry)
{
	if (!name_bytes)
		return refuse(line, "there is no name before the secret; write NAME:SECRET");
	if (name_bytes >= sizeof(entry->name))
		return refuse(line, "the name is longer than 31 characters");
	memset(entry->name, 0, sizeof(entry->name));
	memcpy(entry->name, line->text, name_bytes);
	if (strlen(entry->name) != name_bytes || !rbx_credential_makes_sense(entry->name))
		return refuse(line, "the name has a character that is none of A-Z a-z 0-9 . _ -");
	return 0;
}

static int secret_take(const struct line *line, const char *secret, struct entry *entry)
{
	size_t length = line->length - (size_t)(secret - line->text);
	const char *wrong = rbx_secret_wrong(secret, length);

	if (length && secret[length - 1] == '\r')
		wrong = "ends with a carriage return; write the file with plain line ends";
	if (wrong)
		return rbx_error(-EINVAL, "%s:%u: the secret %s", line->path, line->number, wrong);
	entry->secret = secret;
	entry->secret_bytes = (uint32_t)length;
	return 0;
}

static int line_take(const struct line *line, struct entry *entry)
{
	const char *colon = memchr(line->text, ':', line->length);
	const char *name_end;
	int err;

	if (!colon)
		return refuse(line, "there is no colon; write NAME:SECRET");
	name_end = memchr(line->text, ',', (size_t)(colon - line->text)) ?: colon;
	entry->line = line->number;
	err = name_take(line, (size_t)(name_end - line->text), entry);
	if (!err)
		err = terms_take(line, name_end, colon, &entry->terms);
	return err ? err : secret_take(line, colon + 1, entry);
}

/* ---- All lines --------------------------------------------------------------*/

/* Of the same name in the order of lines. */
static int compare(const void *a_pointer, const void *b_pointer)
{
	const struct entry *a = a_pointer, *b = b_pointer;
	int by_name = memcmp(a->name, b->name, sizeof(a->name));

	return by_name ? by_name : (a->line > b->line) - (a->line < b->line);
}

static int lines_take(struct rbx_secrets *secrets, struct line *line, size_t text_bytes)
{
	const char *text = secrets->text, *end = text + text_bytes;
	int err = 0;

	while (!err && text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));

		line->number++;
		line->text = text;
		line->length = (size_t)((newline ?: end) - text);
		text += line->length + 1;
		if (!line->length || *line->text == '#')
			continue;
		if (secrets->count == RBX_CREDENTIALS_MAX)
			return rbx_error(-EINVAL, "%s:%u: more than %u lines with a secret",
					 line->path, line->number, RBX_CREDENTIALS_MAX);
		err = line_take(line, &secrets->entries[secrets->count]);
		secrets->count += !err;
	}
	return err;
}

/* What differs between the terms of two lines, or NULL. */
static const char *other_term(const struct entry *a, const struct entry *b)
{
	if (a->terms.quota_bytes != b->terms.quota_bytes)
		return "quota";
	if (a->terms.volumes_max != b->terms.volumes_max)
		return "number of volumes";
	return a->terms.is_admin != b->terms.is_admin ? "right of an admin" : NULL;
}

/* At most two lines of a name, with the same terms. */
static int names_check(const struct rbx_secrets *secrets, const char *path)
{
	const struct entry *entries = secrets->entries;

	for (uint32_t i = 1; i < secrets->count; i++) {
		const struct entry *entry = &entries[i], *before = &entries[i - 1];
		const char *other = other_term(entry, before);

		if (strcmp(before->name, entry->name))
			continue;
		if (i > 1 && !strcmp(entries[i - 2].name, entry->name))
			return rbx_error(-EINVAL, "%s:%u: %s has two secrets already; remove the oldest",
					 path, entry->line, entry->name);
		if (other)
			return rbx_error(-EINVAL, "%s:%u: %s has another %s in line %u", path,
					 entry->line, entry->name, other, before->line);
	}
	return 0;
}

static int secrets_read(struct rbx_secrets *secrets, int fd, const char *path,
			uint64_t quota_min_bytes)
{
	struct line line = { .path = path, .quota_min_bytes = quota_min_bytes };
	ssize_t bytes = rbx_secret_read(fd, secrets->text, secrets->text_bytes);
	int err;

	if (bytes < 0)
		return rbx_error((int)bytes, "cannot read secret file %s: %s", path,
				 strerror((int)-bytes));
	if ((size_t)bytes == secrets->text_bytes)
		return rbx_error(-EINVAL, "%s grew while it was read; try again", path);
	err = lines_take(secrets, &line, (size_t)bytes);
	if (err)
		return err;
	if (!secrets->count)
		return rbx_error(-EINVAL, "%s has no secret, so nobody could borrow; add a line NAME:SECRET",
				 path);
	qsort(secrets->entries, secrets->count, sizeof(*secrets->entries), compare);
	return names_check(secrets, path);
}

/* Memory for a file of so many bytes, and one more, which no core file shows. */
static int text_make(struct rbx_secrets *secrets, uint64_t file_bytes, const char *path)
{
	if (file_bytes > FILE_BYTES_MAX)
		return rbx_error(-EINVAL, "%s is longer than %u lines of secrets can be", path,
				 RBX_CREDENTIALS_MAX);
	secrets->text_bytes = (size_t)file_bytes + 1;
	secrets->text = mmap(NULL, secrets->text_bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (secrets->text == MAP_FAILED) {
		secrets->text = NULL;
		return rbx_error(-ENOMEM, "no memory for secrets");
	}
	madvise(secrets->text, secrets->text_bytes, MADV_DONTDUMP);
	return 0;
}

int rbx_secrets_load(const char *path, uint64_t quota_min_bytes, struct rbx_secrets **out)
{
	struct rbx_secrets *secrets;
	uint64_t file_bytes;
	int fd = rbx_secret_open(path, &file_bytes), err;

	if (fd < 0)
		return fd;
	secrets = calloc(1, sizeof(*secrets));
	err = secrets ? text_make(secrets, file_bytes, path) :
			rbx_error(-ENOMEM, "no memory for secrets");
	if (!err)
		err = secrets_read(secrets, fd, path, quota_min_bytes);
	if (err)
		rbx_secrets_free(secrets);
	else
		*out = secrets;
	close(fd);
	return err;
}

void rbx_secrets_free(struct rbx_secrets *secrets)
{
	if (!secrets)
		return;
	if (secrets->text) {
		OPENSSL_cleanse(secrets->text, secrets->text_bytes);
		munmap(secrets->text, secrets->text_bytes);
	}
	free(secrets);
}

/* ---- The table --------------------------------------------------------------*/

uint32_t rbx_secrets_count(const struct rbx_secrets *secrets)
{
	return secrets->count;
}

const char *rbx_secrets_at(const struct rbx_secrets *secrets, uint32_t index,
			   struct rbx_root *root)
{
	const struct entry *entry = &secrets->entries[index];

	RBX_ASSERT(index < secrets->count);
	*root = (struct rbx_root){ (const uint8_t *)entry->secret, entry->secret_bytes };
	return entry->name;
}

/* The first entry whose name is not before this one. */
static uint32_t lower_bound(const struct rbx_secrets *secrets, const char *name)
{
	uint32_t low = 0, high = secrets->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (memcmp(secrets->entries[middle].name, name, RBX_CREDENTIAL_BYTES) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool rbx_secrets_find(const struct rbx_secrets *secrets, const char name[RBX_CREDENTIAL_BYTES],
		      struct rbx_credential *credential)
{
	*credential = (struct rbx_credential){ .terms.volumes_max = RBX_VOLUMES_NOT_SAID };
	for (uint32_t i = secrets ? lower_bound(secrets, name) : 0;
	     secrets && i < secrets->count; i++) {
		const struct entry *entry = &secrets->entries[i];

		if (memcmp(entry->name, name, RBX_CREDENTIAL_BYTES))
			break;
		credential->terms = entry->terms;
		credential->roots[credential->roots_count++] = (struct rbx_root){
			(const uint8_t *)entry->secret, entry->secret_bytes
		};
	}
	return credential->roots_count > 0;
}
