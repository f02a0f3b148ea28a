/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * write_behind.c - see write_behind.h.
 *
 * Pages in use are found by their block in a hash table with as many buckets as pages, so a
 * lookup takes one or two steps. A page that replaces an older one does not take its place:
 * it gives the older one its memory. So the older page keeps its position in the queue, and a
 * block that is written again and again is still sent.
 */
#include "core/write_behind.h"

/* ---- Memory ---------------------------------------------------------------*/

static uint32_t bucket_bits(uint32_t pages)
{
	uint32_t bits = 1;

	while (1u << bits < pages)
		bits++;
	return bits;
}

/* Four blocks in a byte. */
static size_t held_bytes(uint64_t blocks)
{
	return (size_t)((blocks + 3) / 4);
}

/* Eight blocks in a byte. */
static size_t only_bytes(uint64_t blocks)
{
	return (size_t)((blocks + 7) / 8);
}

size_t rbx_write_behind_size(uint64_t blocks, uint32_t pages)
{
	return sizeof(struct rbx_write_behind) +
	       pages * sizeof(struct rbx_behind_page) +
	       (sizeof(struct rbx_behind_page *) << bucket_bits(pages)) +
	       only_bytes(blocks) + held_bytes(blocks);
}

static void page_free(struct rbx_write_behind *behind,
		      struct rbx_behind_page *page)
{
	page->state = RBX_BEHIND_FREE;
	page->next = behind->free;
	behind->free = page;
	behind->free_count++;
}

struct rbx_write_behind *rbx_write_behind_init(void *memory, uint64_t blocks,
					       uint32_t pages)
{
	struct rbx_write_behind *behind = memory;
	uint32_t bits = bucket_bits(pages), i;

	RBX_ASSERT(pages >= RBX_BEHIND_BLOCKS_MAX);
	behind->page_count = pages;
	behind->bucket_shift = 64 - bits;
	behind->pages = (struct rbx_behind_page *)(behind + 1);
	behind->buckets = (struct rbx_behind_page **)(behind->pages + pages);
	behind->only = (uint8_t *)(behind->buckets + (1ull << bits));
	behind->held = behind->only + only_bytes(blocks);
	for (i = pages; i > 0; i--) {
		behind->pages[i - 1].memory = i - 1;
		page_free(behind, &behind->pages[i - 1]);
	}
	return behind;
}

/* ---- Pages by their blocks ------------------------------------------------*/

#define IN(state) (1u << RBX_BEHIND_##state)

static struct rbx_behind_page **bucket_of(const struct rbx_write_behind *behind,
					  uint64_t block)
{
	return &behind->buckets[block * 0x9e3779b97f4a7c15ull >>
				behind->bucket_shift];
}

/* The page of a block that is in one of these states, or NULL. */
static struct rbx_behind_page *find(const struct rbx_write_behind *behind,
				    uint64_t block, uint32_t states)
{
	struct rbx_behind_page *page = *bucket_of(behind, block);

	while (page && (page->block != block || !(states >> page->state & 1)))
		page = page->chain;
	return page;
}

static struct rbx_behind_page *page_take(struct rbx_write_behind *behind,
					 struct rbx_behind_write *write,
					 uint64_t block)
{
	struct rbx_behind_page **bucket = bucket_of(behind, block);
	struct rbx_behind_page *page = behind->free;

	behind->free = page->next;
	behind->free_count--;
	page->state = RBX_BEHIND_HELD;
	page->block = block;
	page->write = write;
	page->chain = *bucket;
	*bucket = page;
	return page;
}

static void page_give(struct rbx_write_behind *behind,
		      struct rbx_behind_page *page)
{
	struct rbx_behind_page **link = bucket_of(behind, page->block);

	while (*link != page)
		link = &(*link)->chain;
	*link = page->chain;
	page_free(behind, page);
}

/* ---- A write begins -------------------------------------------------------*/

/* Whether a write that has not ended has this block. */
static bool is_taken(const struct rbx_write_behind *behind, uint64_t block)
{
	const struct rbx_behind_page *page = *bucket_of(behind, block);

	while (page && (page->block != block || !page->write))
		page = page->chain;
	return page != NULL;
}

static bool may_begin(const struct rbx_write_behind *behind,
		      const struct rbx_behind_write *write)
{
	uint32_t i;

	for (i = 0; i < write->count; i++)
		if (is_taken(behind, write->block + i))
			return false;
	return behind->free_count >= write->count;
}

static void begin(struct rbx_write_behind *behind,
		  struct rbx_behind_write *write)
{
	struct rbx_behind_page **end = &write->pages;
	uint32_t i;

	for (i = 0; i < write->count; i++) {
		*end = page_take(behind, write, write->block + i);
		end = &(*end)->next;
	}
	*end = NULL;
	write->left_count = write->count;
	write->failed = false;
}

bool rbx_write_behind_begin(struct rbx_write_behind *behind,
			    struct rbx_behind_write *write)
{
	struct rbx_node *last = behind->waiting_last;

	RBX_ASSERT(write->count >= 1 && write->count <= RBX_BEHIND_BLOCKS_MAX);
	if (!last && may_begin(behind, write)) {
		begin(behind, write);
		return true;
	}
	write->node.next = last ? last->next : &write->node;
	if (last)
		last->next = &write->node;
	behind->waiting_last = &write->node;
	behind->waits_count++;
	return false;
}

struct rbx_behind_write *rbx_write_behind_admit(struct rbx_write_behind *behind)
{
	struct rbx_node *last = behind->waiting_last;
	struct rbx_behind_write *write;

	if (!last)
		return NULL;
	write = RBX_CONTAINER_OF(last->next, struct rbx_behind_write, node);
	if (!may_begin(behind, write))
		return NULL;
	if (last->next == last)
		behind->waiting_last = NULL;
	else
		last->next = write->node.next;
	begin(behind, write);
	return write;
}

void rbx_write_behind_cancel(struct rbx_write_behind *behind,
			     struct rbx_behind_write *write)
{
	struct rbx_behind_page *page, *next;

	for (page = write->pages; page; page = next) {
		next = page->next;
		RBX_ASSERT(page->state == RBX_BEHIND_HELD);
		page_give(behind, page);
	}
}

/* ---- Sending to the disk -------------------------------------------------- */

static void queue_add(struct rbx_write_behind *behind,
		      struct rbx_behind_page *page)
{
	page->state = RBX_BEHIND_QUEUED;
	page->next = NULL;
	page->previous = behind->queue_last;
	if (page->previous)
		page->previous->next = page;
	else
		behind->queue_first = page;
	behind->queue_last = page;
}

static void queue_remove(struct rbx_write_behind *behind,
			 struct rbx_behind_page *page)
{
	if (page->previous)
		page->previous->next = page->next;
	else
		behind->queue_first = page->next;
	if (page->next)
		page->next->previous = page->previous;
	else
		behind->queue_last = page->previous;
}

/* A page that was not sent gets the contents of a newer one. */
static void replace(struct rbx_write_behind *behind,
		    struct rbx_behind_page *older,
		    struct rbx_behind_page *newer)
{
	uint32_t memory = older->memory;

	RBX_ASSERT(!older->write);
	older->memory = newer->memory;
	older->write = newer->write;
	newer->memory = memory;
	page_give(behind, newer);
}

static void page_acknowledged(struct rbx_write_behind *behind,
			      struct rbx_behind_page *page)
{
	struct rbx_behind_page *older =
		find(behind, page->block, IN(WAITING) | IN(QUEUED));

	if (older) {
		replace(behind, older, page);
		return;
	}
	behind->behind_count++;
	if (find(behind, page->block, IN(SENT)))
		page->state = RBX_BEHIND_WAITING;
	else
		queue_add(behind, page);
}

static bool is_only_here(const struct rbx_write_behind *behind, uint64_t block)
{
	return behind->only[block / 8] >> block % 8 & 1;
}

static void only_set(struct rbx_write_behind *behind, uint64_t block, bool only)
{
	if (is_only_here(behind, block) == only)
		return;
	behind->only[block / 8] ^= (uint8_t)(1u << block % 8);
	RBX_STORE_RELAXED(&behind->only_count,
			  behind->only_count + (only ? 1 : (uint64_t)-1));
}

/* A write that ends BADLY changes nothing: the faster memory may now have older data than was
 * acknowledged, or newer. */
void rbx_write_behind_end(struct rbx_write_behind *behind,
			  struct rbx_behind_write *write,
			  enum rbx_behind_end how)
{
	struct rbx_behind_page *page, *next;

	for (page = write->pages; page; page = next) {
		next = page->next;
		RBX_ASSERT(page->state == RBX_BEHIND_HELD);
		if (how != RBX_BEHIND_BADLY)
			only_set(behind, page->block,
				 how == RBX_BEHIND_THROUGH);
		page->write = how == RBX_BEHIND_THROUGH ? write : NULL;
		page_acknowledged(behind, page);
	}
	write->pages = NULL;
}

/* The first page of a run that contains this page. */
static struct rbx_behind_page *run_first(const struct rbx_write_behind *behind,
					 struct rbx_behind_page *page)
{
	struct rbx_behind_page *before;
	uint32_t i;

	for (i = 1; i < RBX_BEHIND_BLOCKS_MAX; i++) {
		before = find(behind, page->block - 1, IN(QUEUED));
		if (!before)
			break;
		page = before;
	}
	return page;
}

bool rbx_write_behind_send(struct rbx_write_behind *behind,
			   struct rbx_behind_run *run)
{
	struct rbx_behind_page *page = behind->queue_first;

	behind->read_run_count = 0;
	if (!page)
		return false;
	page = run_first(behind, page);
	run->block = page->block;
	run->count = 0;
	while (page && run->count < RBX_BEHIND_BLOCKS_MAX) {
		queue_remove(behind, page);
		page->state = RBX_BEHIND_SENT;
		run->pages[run->count++] = page;
		page = find(behind, page->block + 1, IN(QUEUED));
	}
	return true;
}

bool rbx_write_behind_read_may_go(struct rbx_write_behind *behind)
{
	if (!behind->queue_first)
		return true;
	if (behind->read_run_count == RBX_BEHIND_READ_RUN_MAX)
		return false;
	behind->read_run_count++;
	return true;
}

static void held_set(struct rbx_write_behind *behind, uint64_t block,
		     enum rbx_behind_held held)
{
	uint32_t shift = (uint32_t)(block % 4) * 2;
	uint8_t *byte = &behind->held[block / 4];

	*byte = (uint8_t)((*byte & ~(3u << shift)) | (uint32_t)held << shift);
}

struct rbx_node *rbx_write_behind_sent(struct rbx_write_behind *behind,
				       const struct rbx_behind_run *run,
				       bool taken)
{
	struct rbx_behind_page *page, *newer;
	struct rbx_behind_write *write;
	struct rbx_node *ended = NULL;
	uint32_t i;

	for (i = 0; i < run->count; i++) {
		page = run->pages[i];
		RBX_ASSERT(page->state == RBX_BEHIND_SENT);
		held_set(behind, page->block,
			 taken ? RBX_BEHIND_DISK : RBX_BEHIND_LOST);
		newer = find(behind, page->block, IN(WAITING));
		if (newer)
			queue_add(behind, newer);
		write = page->write;
		behind->behind_count--;
		page_give(behind, page);
		if (!write)
			continue;
		write->failed |= !taken;
		if (--write->left_count)
			continue;
		write->node.next = ended;
		ended = &write->node;
	}
	return ended;
}

/* ---- Where the data is ---------------------------------------------------- */

enum rbx_behind_held rbx_write_behind_find(const struct rbx_write_behind *behind,
					   uint64_t block,
					   const struct rbx_behind_page **page)
{
	*page = find(behind, block, IN(WAITING) | IN(QUEUED));
	if (!*page)
		*page = find(behind, block, IN(SENT));
	if (*page)
		return RBX_BEHIND_PAGE;
	return (enum rbx_behind_held)(behind->held[block / 4] >>
				      block % 4 * 2 & 3);
}

bool rbx_write_behind_is_only_here(const struct rbx_write_behind *behind,
				   uint64_t block, uint32_t count)
{
	uint32_t i;

	if (!behind->only_count)
		return false;
	for (i = 0; i < count; i++)
		if (is_only_here(behind, block + i))
			return true;
	return false;
}
