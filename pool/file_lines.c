/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * file_lines.c - the lines of a pool's file:
 *
 *	# the servers of the north hall
 *	10.0.0.1:7471 rack=7 zone=b
 *	10.0.0.2:7471
 *
 * A line that is broken spoils the file: to leave it out could take away a server that
 * somebody meant to add.
 */
#include <errno.h>
#include <string.h>

#include "pool/pool.h"

#define SPACES " \t\r"

/* Of a broken word, which may be long and hold anything, as much as a terminal can take. */
static const char *word_shown(char *word)
{
	size_t i;

	for (i = 0; word[i]; i++) {
		if (i == 60) {
			word[i] = '\0';
			break;
		}
		if (word[i] < ' ' || word[i] >= 0x7f)
			word[i] = '?';
	}
	return word;
}

static int label_add(struct rbx_pool_member *member, const char *label)
{
	size_t used = strlen(member->labels);

	if (used + !!used + strlen(label) >= sizeof(member->labels))
		return -EINVAL;
	if (used)
		member->labels[used++] = ',';
	strcpy(member->labels + used, label);
	return 0;
}

/* -EINVAL, with a text, or 0. An empty line leaves the address empty. */
static int line_parse(const char *path, unsigned int number, char *line,
		      struct rbx_pool_member *member)
{
	char *rest = line, *word;

	rbx_member_init(member, "");
	line[strcspn(line, "#")] = '\0';
	while ((word = strsep(&rest, SPACES))) {
		if (!*word)
			continue;
		if (!*member->address) {
			if (!rbx_member_address_is_good(word))
				return rbx_error(-EINVAL, "%s:%u: \"%s\" is no address host:port",
						 path, number, word_shown(word));
			rbx_member_init(member, word);
		} else if (strchr(word, ',') || label_add(member, word) ||
			   !rbx_member_labels_are_good(member->labels)) {
			return rbx_error(-EINVAL,
					 "%s:%u: \"%s\" is no label name=value, is there twice, or the labels have more than %u characters",
					 path, number, word_shown(word),
					 RBX_POOL_LABELS_BYTES - 1);
		}
	}
	return 0;
}

static int member_add(const char *path, unsigned int number, struct rbx_members *members,
		      const struct rbx_pool_member *member)
{
	int err = rbx_members_add(members, member);

	if (err == -EEXIST)
		return rbx_error(-EINVAL, "%s:%u: %s is there twice", path, number,
				 member->address);
	if (err == -ENOSPC)
		return rbx_error(err, "%s:%u: a pool has at most %u members", path, number,
				 RBX_POOL_MEMBERS_MAX);
	return err ? rbx_error(err, "out of memory") : 0;
}

int rbx_pool_lines_parse(const char *path, char *text, size_t length_bytes,
			 struct rbx_members *members)
{
	struct rbx_pool_member member;
	char *rest = text, *line;
	unsigned int number = 0;
	int err = 0;

	while (!err && (line = strsep(&rest, "\n"))) {
		number++;
		/* strsep() ends at the first NUL, which may not be that of the end. */
		if (!rest && line + strlen(line) != text + length_bytes)
			return rbx_error(-EINVAL, "%s:%u: a byte is zero: this is no text", path,
					 number);
		err = line_parse(path, number, line, &member);
		if (!err && *member.address)
			err = member_add(path, number, members, &member);
	}
	return err;
}
