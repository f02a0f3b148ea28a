/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tuning.c - reads and writes the tuning file, see tuning.h.
 *
 * Reading never fails: the file is there to make a program faster, so it must not keep
 * one from starting. Values that cannot be read or are out of range are left out, and
 * rbx_describe() shows why. Only regular files of at most FILE_BYTES_MAX are read, so
 * that a pipe or a device of that name cannot block the program.
 *
 * Writing keeps the entries of other devices, and replaces the whole file. A reader sees
 * the old file or the new one. A file that is not a tuning file is never overwritten.
 */
#include "lib/buffers/tuning.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/context.h"
#include "lib/sized.h"

#define VERSION 1
#define FILE_BYTES_MAX (1 << 20) /* some thousand devices */

void rbx_tuning_key(const struct rbx_device *device,
		    char key[RBX_TUNING_KEY_BYTES])
{
	snprintf(key, RBX_TUNING_KEY_BYTES, "%s %s", device->ops->name,
		 device->caps.name);
}

static int default_path(char *path, size_t bytes)
{
	const char *base = secure_getenv("XDG_CONFIG_HOME");
	const char *below = "";

	if (!base || base[0] != '/') {
		base = secure_getenv("HOME");
		below = "/.config";
	}
	if (!base || base[0] != '/')
		return -EINVAL;
	return (size_t)snprintf(path, bytes, "%s%s/rdmabox/tune.json", base,
				below) < bytes ?
		       0 :
		       -ENAMETOOLONG;
}

int rbx_tuning_default_path(char *path, size_t size_bytes)
{
	int err;

	if (!path)
		return rbx_error(-EINVAL, "a path is wanted");
	err = default_path(path, size_bytes);
	if (err == -ENAMETOOLONG)
		return rbx_error(err, "the path of the tuning file needs more than %zu bytes",
				 size_bytes);
	return err ? rbx_error(err, "there is no home folder for the tuning file") :
		     0;
}

/* Where a path of "" leads. */
static int resolve(const char *path, char *resolved, size_t bytes)
{
	if (!path || !path[0])
		return default_path(resolved, bytes);
	return (size_t)snprintf(resolved, bytes, "%s", path) < bytes ?
		       0 :
		       -ENAMETOOLONG;
}

/* ---- Reading ---------------------------------------------------------------*/

/* Opens the file for reading. NULL: see errno. */
static FILE *open_regular(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat status;
	FILE *file;

	if (fd < 0)
		return NULL;
	file = fdopen(fd, "r");
	if (!file || fstat(fd, &status) || !S_ISREG(status.st_mode) ||
	    status.st_size > FILE_BYTES_MAX) {
		if (file)
			fclose(file);
		else
			close(fd);
		errno = EFBIG;
		return NULL;
	}
	return file;
}

/* Reads the whole file. The caller drops the result. NULL: see errno; the reason is in
 * text. */
static json_t *read_file(const char *path, char *reason, size_t reason_bytes)
{
	FILE *file = open_regular(path);
	json_error_t error;
	json_t *root;

	if (!file) {
		snprintf(reason, reason_bytes, "%s",
			 errno == EFBIG ? "not a file of at most 1 MiB" :
					  strerror(errno));
		return NULL;
	}
	root = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
	fclose(file);
	if (root && json_integer_value(json_object_get(root, "version")) ==
			    VERSION &&
	    json_is_object(json_object_get(root, "devices")))
		return root;
	snprintf(reason, reason_bytes, "not a tuning file of version %d%s%s",
		 VERSION, root ? "" : ": ", root ? "" : error.text);
	json_decref(root);
	errno = EINVAL;
	return NULL;
}

/* Reads a number. True if it is in range or absent; false: it is bad. */
static bool read_number(const json_t *entry, const char *name, json_int_t low,
			json_int_t high, json_int_t *value)
{
	const json_t *found = json_object_get(entry, name);

	*value = 0;
	if (!found)
		return true;
	*value = json_integer_value(found);
	return json_is_integer(found) && *value >= low && *value <= high;
}

/* Reads the entry of one device. Returns what is wrong with it, or "". */
static const char *read_entry(const json_t *entry,
			      const struct rbx_device *device,
			      struct rbx_tuning *tuning)
{
	json_int_t queue_pairs_max =
		RBX_MIN(device->caps.max_qp, RBX_QUEUE_PAIRS_MAX);
	json_int_t number;

	if (json_is_null(json_object_get(entry, "break_even_bytes")))
		tuning->break_even_bytes = UINT64_MAX;
	else if (read_number(entry, "break_even_bytes", 1, INT64_MAX, &number))
		tuning->break_even_bytes = (uint64_t)number;
	else
		return "break_even_bytes is not a length";
	if (!read_number(entry, "queue_pairs", 1, queue_pairs_max, &number))
		return "queue_pairs is not a number that the device supports";
	tuning->queue_pairs = (uint32_t)number;
	return json_is_object(entry) ? "" : "not an object";
}

static void load_entry(const json_t *root, const char *path,
		       const struct rbx_device *device,
		       struct rbx_tuning *tuning, char *note)
{
	char key[RBX_TUNING_KEY_BYTES];
	const json_t *entry;
	const char *wrong;

	rbx_tuning_key(device, key);
	entry = json_object_get(json_object_get(root, "devices"), key);
	wrong = entry ? read_entry(entry, device, tuning) : "";
	if (*wrong)
		snprintf(note, RBX_TUNING_NOTE_BYTES,
			 "warning: %s: %s: %s; run rdmabox tune", path, key,
			 wrong);
	else if (entry)
		snprintf(note, RBX_TUNING_NOTE_BYTES, "%s", path);
	else
		snprintf(note, RBX_TUNING_NOTE_BYTES,
			 "none: %s says nothing of %s; run rdmabox tune", path,
			 key);
}

static void load_file(const char *path, const struct rbx_device *device,
		      struct rbx_tuning *tuning, char *note)
{
	char reason[256];
	json_t *root = read_file(path, reason, sizeof(reason));

	if (root)
		load_entry(root, path, device, tuning, note);
	else if (errno == ENOENT)
		snprintf(note, RBX_TUNING_NOTE_BYTES,
			 "none: no %s; rdmabox tune writes it", path);
	else
		snprintf(note, RBX_TUNING_NOTE_BYTES,
			 "warning: %s: %s; remove it and run rdmabox tune",
			 path, reason);
	json_decref(root);
}

void rbx_tuning_load(const char *path, const struct rbx_device *device,
		     struct rbx_tuning *tuning,
		     char note[RBX_TUNING_NOTE_BYTES])
{
	char resolved[PATH_MAX];

	*tuning = (struct rbx_tuning){ .size_bytes = sizeof(*tuning) };
	if (!strcmp(path, "none"))
		snprintf(note, RBX_TUNING_NOTE_BYTES, "none: as asked");
	else if (resolve(path, resolved, sizeof(resolved)))
		snprintf(note, RBX_TUNING_NOTE_BYTES,
			 "none: there is no home folder");
	else
		load_file(resolved, device, tuning, note);
}

/* ---- Writing ---------------------------------------------------------------*/

/* Makes the last two folders of a path if they are missing. */
static void make_folders(const char *path)
{
	char folder[PATH_MAX];
	char *last, *first;

	snprintf(folder, sizeof(folder), "%s", path);
	last = strrchr(folder, '/');
	*last = 0;
	first = strrchr(folder, '/');
	/* An error is reported when the file is made. */
	if (first > folder) {
		*first = 0;
		(void)mkdir(folder, 0755);
		*first = '/';
	}
	(void)mkdir(folder, 0755);
}

static int write_json(int fd, const json_t *root)
{
	FILE *file = fdopen(fd, "w");
	int err = 0;

	if (!file) {
		err = -errno;
		close(fd);
		return err;
	}
	errno = EIO;
	if (json_dumpf(root, file, JSON_INDENT(2)) || fputc('\n', file) == EOF ||
	    fchmod(fd, 0644) || fflush(file) || fsync(fd))
		err = -errno;
	if (fclose(file) && !err)
		err = -errno;
	return err;
}

/* Writes a new file and moves it to the place of the old one. */
static int replace_file(const char *path, const json_t *root)
{
	char fresh[PATH_MAX + 8];
	int fd, err;

	snprintf(fresh, sizeof(fresh), "%s.XXXXXX", path);
	fd = mkostemp(fresh, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = write_json(fd, root);
	if (!err && rename(fresh, path))
		err = -errno;
	if (err)
		unlink(fresh);
	return err;
}

static json_t *new_root(void)
{
	return json_pack("{s:i, s:{}}", "version", VERSION, "devices");
}

/* Sets the known values; the rest of the entry stays. */
static int set_entry(json_t *root, const char *key,
		     const struct rbx_tuning *tuning)
{
	json_t *devices = json_object_get(root, "devices");
	json_t *entry = json_object_get(devices, key);
	int failed = 0;

	if (!json_is_object(entry)) {
		entry = json_object();
		failed = json_object_set_new(devices, key, entry);
	}
	if (tuning->break_even_bytes > INT64_MAX)
		failed |= json_object_set_new(entry, "break_even_bytes",
					      json_null());
	else if (tuning->break_even_bytes)
		failed |= json_object_set_new(
			entry, "break_even_bytes",
			json_integer((json_int_t)tuning->break_even_bytes));
	if (tuning->queue_pairs)
		failed |= json_object_set_new(
			entry, "queue_pairs",
			json_integer(tuning->queue_pairs));
	return failed ? -ENOMEM : 0;
}

int rbx_tuning_save(struct rbx_context *ctx, const char *path,
		    const struct rbx_tuning *tuning)
{
	char key[RBX_TUNING_KEY_BYTES], resolved[PATH_MAX], reason[256];
	struct rbx_tuning taken = { .size_bytes = sizeof(taken) };
	json_t *root;
	int err;

	if (!ctx || !tuning)
		return rbx_error(-EINVAL, "a context and a tuning must be given");
	err = rbx_sized_take("rbx_tuning",
			     offsetof(struct rbx_tuning, queue_pairs), &taken,
			     sizeof(taken), tuning);
	if (err)
		return err;
	if (taken.queue_pairs > RBX_QUEUE_PAIRS_MAX)
		return rbx_error(-EINVAL, "a tuning has at most %u queue pairs",
				 RBX_QUEUE_PAIRS_MAX);
	err = resolve(path, resolved, sizeof(resolved));
	if (err == -ENAMETOOLONG)
		return rbx_error(-EINVAL, "the path of the tuning file is too long");
	if (err)
		return rbx_error(err, "there is no home folder for the tuning file: name one");
	if (!path || !path[0])
		make_folders(resolved);
	root = read_file(resolved, reason, sizeof(reason));
	if (!root && errno != ENOENT)
		return rbx_error(-EINVAL, "%s is not overwritten: %s; remove it, or name another",
				 resolved, reason);
	if (!root)
		root = new_root();
	rbx_tuning_key(ctx->device, key);
	err = root ? set_entry(root, key, &taken) : -ENOMEM;
	if (!err)
		err = replace_file(resolved, root);
	json_decref(root);
	return err ? rbx_error(err, "cannot write %s: %s", resolved,
			       strerror(-err)) :
		     0;
}
