/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox volume list and show: what the servers know of named volumes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/volume/volume.h"

#define COUNT_FIRST 64u
#define VOLUME_ID_TEXT 17

static const char *reason_of(int err)
{
	return err == -ENOMEM ? "no memory for the list of volumes" : rbx_last_error();
}

/* All volumes, in memory that the caller frees. Returns their number or -errno. */
static int ask(struct rbx_context *ctx, struct rbx_volume_info **infos)
{
	uint32_t room = COUNT_FIRST;
	int count;

	for (;;) {
		*infos = calloc(room, sizeof(**infos));
		if (!*infos)
			return -ENOMEM;
		volume_away_forget();
		count = rbx_volume_list(ctx, volume_wanted.pool, *infos, room);
		if (count <= (int)room)
			return count;
		room = (uint32_t)count;
		free(*infos);
	}
}

const char *volume_info_ask(struct rbx_context *ctx, struct rbx_volume_info *info)
{
	struct rbx_volume_info *infos;
	int named_count = 0, count = ask(ctx, &infos);

	for (int i = 0; i < count; i++) {
		if (strcmp(infos[i].name, volume_wanted.name))
			continue;
		*info = infos[i];
		named_count++;
	}
	free(infos);
	if (count < 0)
		return reason_of(count);
	if (named_count > 1)
		return "there are several volumes of this name on these servers: name the servers of one of them";
	return named_count ? NULL : "there is no such volume on these servers; see rdmabox volume list";
}

const char *volume_servers_check(struct rbx_context *ctx)
{
	struct rbx_volume_info info;
	const char *reason = volume_info_ask(ctx, &info);

	if (!reason && info.servers_there + info.servers_out < info.servers)
		return "a server is away, or was restarted";
	return reason;
}

bool volume_is_lost(struct rbx_context *ctx)
{
	struct rbx_volume_info info;

	return !volume_info_ask(ctx, &info) && info.is_lost;
}

/* A number that a client has said: JSON has none that are larger than this. */
static json_int_t said(uint64_t number)
{
	return number < INT64_MAX ? (json_int_t)number : INT64_MAX;
}

json_t *volume_info_json(const struct rbx_volume_info *info)
{
	char id[VOLUME_ID_TEXT];

	snprintf(id, sizeof(id), "%016" PRIx64, info->volume_id);
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:o, s:b, s:s, s:i, s:i, s:i, s:b, s:i, s:i, s:b, s:b, s:b}", "name",
			 info->name, "owner", info->owner, "volume_id", id, "volume_bytes",
			 said(info->volume_bytes), "slab_bytes", said(info->slab_bytes),
			 "reserved_bytes", said(info->reserved_bytes), "keep_s",
			 info->keep_s == UINT64_MAX ? json_null() :
						      json_integer(said(info->keep_s)),
			 "is_open", (int)info->is_open, "writer", info->writer, "servers",
			 (int)info->servers, "servers_there", (int)info->servers_there,
			 "servers_out", (int)info->servers_out, "too_few", (int)info->too_few,
			 "replicas", (int)info->replicas, "copies", (int)info->copies,
			 "checksums", (int)info->checksums, "is_lost", (int)info->is_lost,
			 "is_whole", (int)info->is_whole);
}

static int print_json(const struct cli_command *command, json_t *json)
{
	return cli_json_write(command, json, "-") ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

/* ---- list -------------------------------------------------------------------------------*/

static const struct cli_option list_options[] = {
	VOLUME_POOL("servers to ask; those that are away are left out"),
	VOLUME_JSON("One object: `volumes` is a list of objects with the keys of `rdmabox volume show`, "
		    "but for `members`; `servers_away` is a list of objects with `address` and "
		    "`error`: the servers that did not answer, and why."),
	VOLUME_REACH,
};

static void widen(int *width, const char *text)
{
	*width = (int)strlen(text) > *width ? (int)strlen(text) : *width;
}

int volume_owners_width(const struct rbx_volume_info *infos, int count, const char *credential)
{
	int width = (int)strlen("OWNER");
	bool is_wanted = false;

	for (int i = 0; i < count; i++) {
		widen(&width, infos[i].owner);
		is_wanted |= strcmp(infos[i].owner, credential) != 0;
	}
	return is_wanted ? width : 0;
}

void volume_owner_print(int width, const char *owner)
{
	if (width)
		printf("%-*s  ", width, *owner ? owner : "-");
}

/* Of it and its servers, as far as they were asked. */
static const char *state_of_volume(const struct rbx_volume_info *info)
{
	if (info->too_few)
		return "too-few";
	if (info->is_lost)
		return "lost";
	return info->servers_there < info->servers ? "lacking" : "all";
}

static int print_list(const struct rbx_volume_info *infos, int count)
{
	int width = (int)strlen("NAME"), owners;
	char size[32], keep[32], servers[32];

	owners = volume_owners_width(infos, count, volume_wanted.library.credential);
	for (int i = 0; i < count; i++)
		widen(&width, infos[i].name);
	if (count) {
		volume_owner_print(owners, "OWNER");
		printf("%-*s  %12s  %7s  %7s  %-7s  %s\n", width, "NAME", "SIZE", "KEEP",
		       "SERVERS", "STATE", "OPEN BY");
	}
	for (int i = 0; i < count; i++) {
		snprintf(servers, sizeof(servers), "%u/%u", infos[i].servers_there,
			 infos[i].servers);
		volume_owner_print(owners, infos[i].owner);
		printf("%-*s  %12s  %7s  %7s  %-7s  %s\n", width, infos[i].name,
		       cli_size_print(infos[i].volume_bytes, size, sizeof(size)),
		       volume_keep_print(infos[i].keep_s, keep, sizeof(keep)), servers,
		       state_of_volume(&infos[i]), infos[i].is_open ? infos[i].writer : "-");
	}
	return CLI_EXIT_OK;
}

static int list_json(const struct rbx_volume_info *infos, int count)
{
	json_t *json = json_object(), *volumes = json_array();

	for (int i = 0; i < count; i++)
		json_array_append_new(volumes, volume_info_json(&infos[i]));
	json_object_set_new(json, "volumes", volumes);
	json_object_set_new(json, "servers_away", volume_away_json());
	return print_json(&volume_list_command, json);
}

static int list(int argc, char **argv)
{
	struct rbx_volume_info *infos = NULL;
	struct rbx_context *ctx;
	int count, rc = CLI_EXIT_OK;

	ctx = volume_begin(&volume_list_command, argc, argv, &rc);
	if (!ctx)
		return rc;
	count = ask(ctx, &infos);
	if (count < 0)
		rc = cli_fail(&volume_list_command, "%s", reason_of(count));
	else
		rc = volume_wanted.as_json ? list_json(infos, count) : print_list(infos, count);
	volume_away_print(&volume_list_command, "");
	volume_away_forget();
	free(infos);
	rbx_close(ctx);
	return rc;
}

const struct cli_command volume_list_command = {
	.name = "volume list",
	.purpose = "list the volumes of servers",
	.notes = "SERVERS are those that were asked and have it, of those that it has. STATE is all; lacking,\n"
		 "if some of them are away or out; lost, if slabs were lost with their servers (rdmabox volume\n"
		 "clear-lost); or too-few, if it cannot be opened without those that are away. An admin of the\n"
		 "servers (rdmabox serve --secrets) sees the volumes of all owners. A server that is away is told\n"
		 "on stderr, and the exit code is 0 if any other one has answered.",
	CLI_OPTIONS(list_options),
	.run = list,
	.prepare = volume_prepare,
};

/* ---- show -------------------------------------------------------------------------------*/

static const struct cli_option show_options[] = {
	VOLUME_NAME,
	VOLUME_POOL("servers to ask; those that are away are left out"),
	VOLUME_JSON("One object, with the keys of the table; `members` is a list of objects with "
		    "`incarnation`, `state` and `address`, and `servers_away` one of objects with "
		    "`address` and `error`: the servers that did not answer, and why. `keep_s` is null if the volume is kept "
		    "for ever, and `is_open` is true or false."),
	VOLUME_REACH,
};

struct members {
	struct rbx_volume_member list[64]; /* a volume has no more */
	int count;
};

static const char *state_of(const struct rbx_volume_member *member)
{
	if (member->is_out)
		return "out";
	return member->is_there ? "in" : "missing";
}

static json_t *members_json(const struct members *members)
{
	char incarnation[VOLUME_ID_TEXT];
	json_t *list = json_array();

	for (int i = 0; i < members->count; i++) {
		const struct rbx_volume_member *member = &members->list[i];

		snprintf(incarnation, sizeof(incarnation), "%016" PRIx64, member->incarnation);
		json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "incarnation",
						      incarnation, "state", state_of(member),
						      "address", member->address));
	}
	return list;
}

static int show_json(const struct rbx_volume_info *info, const struct members *members)
{
	json_t *json = volume_info_json(info);

	json_object_set_new(json, "members", members_json(members));
	json_object_set_new(json, "servers_away", volume_away_json());
	return print_json(&volume_show_command, json);
}

static int print_table(const struct rbx_volume_info *info, const struct members *members)
{
	char keep[32];

	printf("volume %s\n", info->name);
	printf("  %-14s %s\n", "owner", *info->owner ? info->owner : "-");
	printf("  %-14s %016" PRIx64 "\n", "volume_id", info->volume_id);
	printf("  %-14s %" PRIu64 "\n", "volume_bytes", info->volume_bytes);
	printf("  %-14s %" PRIu64 "\n", "slab_bytes", info->slab_bytes);
	printf("  %-14s %" PRIu64 "\n", "reserved_bytes", info->reserved_bytes);
	printf("  %-14s %s\n", "keep", volume_keep_print(info->keep_s, keep, sizeof(keep)));
	printf("  %-14s %s\n", "is_open", info->is_open ? "yes" : "no");
	printf("  %-14s %s\n", "writer", info->writer);
	printf("  %-14s %u\n", "servers", info->servers);
	printf("  %-14s %u\n", "servers_there", info->servers_there);
	printf("  %-14s %u\n", "servers_out", info->servers_out);
	printf("  %-14s %s\n", "too_few",
	       info->too_few ? "yes: it cannot be opened without those that are away" : "no");
	printf("  %-14s %u\n", "replicas", info->replicas);
	printf("  %-14s %u\n", "copies", info->copies);
	printf("  %-14s %s\n", "checksums", info->checksums ? "yes" : "no");
	printf("  %-14s %s\n", "is_lost",
	       info->is_lost ? "yes, in part: rdmabox volume clear-lost tells what" : "no");
	printf("  %-14s %s\n", "is_whole", info->is_whole ? "yes" : "no");
	for (int i = 0; i < members->count; i++)
		printf("  %-14s %016" PRIx64 "  %-7s  %s\n", "member",
		       members->list[i].incarnation, state_of(&members->list[i]),
		       *members->list[i].address ? members->list[i].address : "-");
	return CLI_EXIT_OK;
}

/* Those that have just not answered are not waited for again. Returns NULL, or why it is not
 * known. */
static const char *members_ask(struct rbx_context *ctx, const char *name, struct members *members)
{
	char *there = volume_pool_there();

	members->count = there ? rbx_volume_members_list(ctx, there, name, members->list, 64) :
				 -ENOMEM;
	free(there);
	return members->count < 0 ? reason_of(members->count) : NULL;
}

static int show(int argc, char **argv)
{
	struct rbx_volume_info info;
	struct rbx_context *ctx;
	struct members members;
	const char *reason;
	int rc = CLI_EXIT_OK;

	ctx = volume_begin(&volume_show_command, argc, argv, &rc);
	if (!ctx)
		return rc;
	reason = volume_info_ask(ctx, &info);
	if (!reason)
		reason = members_ask(ctx, info.name, &members);
	if (reason)
		rc = cli_fail(&volume_show_command, "%s", reason);
	else
		rc = volume_wanted.as_json ? show_json(&info, &members) :
					     print_table(&info, &members);
	volume_away_print(&volume_show_command, "");
	volume_away_forget();
	rbx_close(ctx);
	return rc;
}

const struct cli_command volume_show_command = {
	.name = "volume show",
	.purpose = "show what the servers know of a volume",
	.notes = "writer is the program that opened it last; with is_open it has it open now. is_whole: what\n"
		 "was written has all its replicas, at servers that are there and in use; wait for that\n"
		 "before another server is restarted or removed. A member is a server: its incarnation,\n"
		 "whether it is in, out or missing, and its address.",
	CLI_OPTIONS(show_options),
	.run = show,
	.prepare = volume_prepare,
};
