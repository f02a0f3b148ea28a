/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * write_behind_model_test.c - random writes, sent to a disk that takes its time or
 * fails, are found as a plain model says, whatever comes when.
 *
 * Each write is a number, which stands for its contents. The model knows for each
 * block which number was acknowledged last, which may be there instead since its
 * write has not ended, and what the disk has. And what is quicker than the disk: of a
 * write that goes through it has some blocks and not others, and can be read all the
 * same. It is asked first, unless the machine says that it is not to be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/random.h"
#include "core/write_behind.h"

#define BLOCKS 64u
#define PAGES 40u
#define JUNK UINT32_MAX
#define WRITES 12u
#define RUNS 4u

static struct rbx_write_behind *behind;

static struct model {
	struct rbx_random random;
	bool disk_fails; /* now and then */
	uint32_t number;
	uint32_t memory[PAGES];
	uint32_t acknowledged[BLOCKS];
	uint32_t outstanding[BLOCKS]; /* of a write through; 0: none */
	uint32_t quicker[BLOCKS];
	uint32_t disk[BLOCKS];
	bool refused[BLOCKS]; /* the last time */
	uint32_t on_its_way[BLOCKS]; /* 0: nothing */
	struct {
		struct rbx_behind_write write;
		uint32_t number;
		enum { IDLE, WAITS, BEGUN, THROUGH } state;
	} writes[WRITES];
	uint32_t admitted; /* number of the last one */
	struct rbx_behind_run runs[RUNS]; /* count 0: none */
} model;

static uint32_t below(uint32_t limit)
{
	return rbx_random_below(&model.random, limit);
}

static void model_begun(uint32_t i)
{
	struct rbx_behind_page *page = model.writes[i].write.pages;
	uint32_t count = 0;

	assert_true(model.writes[i].number > model.admitted); /* in their order */
	model.admitted = model.writes[i].number;
	model.writes[i].state = BEGUN;
	for (; page; page = page->next, count++) {
		assert_int_equal(page->block,
				 model.writes[i].write.block + count);
		model.memory[page->memory] = model.writes[i].number;
	}
	assert_int_equal(count, model.writes[i].write.count);
}

static void model_begin(uint32_t i)
{
	uint32_t count = below(4) ? 1 + below(3) :
				    1 + below(RBX_BEHIND_BLOCKS_MAX);

	model.writes[i].write = (struct rbx_behind_write){
		.block = below(BLOCKS - count + 1),
		.count = count,
	};
	model.writes[i].number = ++model.number;
	model.writes[i].state = WAITS;
	if (rbx_write_behind_begin(behind, &model.writes[i].write))
		model_begun(i);
}

static void model_end(uint32_t i)
{
	struct rbx_behind_write *write = &model.writes[i].write;
	bool through = below(4) == 0;
	uint32_t k;

	for (k = 0; k < write->count; k++) {
		if (through)
			model.outstanding[write->block + k] =
				model.writes[i].number;
		else
			model.acknowledged[write->block + k] =
				model.writes[i].number;
		if (!through || below(2))
			model.quicker[write->block + k] =
				model.writes[i].number;
	}
	model.writes[i].state = through ? THROUGH : IDLE;
	rbx_write_behind_end(behind, write,
			     through ? RBX_BEHIND_THROUGH : RBX_BEHIND_WELL);
}

static void model_send(uint32_t r)
{
	struct rbx_behind_run *run = &model.runs[r];
	uint32_t k;

	if (!rbx_write_behind_send(behind, run)) {
		run->count = 0;
		return;
	}
	for (k = 0; k < run->count; k++) {
		assert_int_equal(run->pages[k]->block, run->block + k);
		assert_int_equal(model.on_its_way[run->block + k], 0);
		model.on_its_way[run->block + k] =
			model.memory[run->pages[k]->memory];
	}
}

static void model_through_ended(const struct rbx_behind_write *write,
				bool was_taken)
{
	uint32_t i = 0, k;

	while (&model.writes[i].write != write)
		i++;
	assert_int_equal(model.writes[i].state, THROUGH);
	assert_true(was_taken || write->failed);
	for (k = 0; k < write->count; k++)
		assert_true(write->failed ||
			    model.disk[write->block + k] >=
				    model.writes[i].number);
	model.writes[i].state = IDLE;
}

static void model_sent(uint32_t r)
{
	struct rbx_behind_run *run = &model.runs[r];
	bool was_taken = !model.disk_fails || below(8);
	struct rbx_node *ended, *next;
	uint32_t k;

	for (k = 0; k < run->count; k++) {
		uint64_t block = run->block + k;

		/* Nobody has touched it on its way. */
		assert_int_equal(model.memory[run->pages[k]->memory],
				 model.on_its_way[block]);
		model.disk[block] = was_taken ? model.on_its_way[block] : JUNK;
		model.refused[block] = !was_taken;
		if (model.on_its_way[block] == model.outstanding[block]) {
			model.acknowledged[block] = model.outstanding[block];
			model.outstanding[block] = 0;
		}
		model.on_its_way[block] = 0;
	}
	ended = rbx_write_behind_sent(behind, run, was_taken);
	run->count = 0;
	for (; ended; ended = next) {
		next = ended->next;
		model_through_ended(RBX_CONTAINER_OF(ended,
						     struct rbx_behind_write,
						     node),
				    was_taken);
	}
}

static void model_admit(void)
{
	struct rbx_behind_write *write;
	uint32_t i;

	while ((write = rbx_write_behind_admit(behind))) {
		for (i = 0; &model.writes[i].write != write;)
			i++;
		assert_int_equal(model.writes[i].state, WAITS);
		model_begun(i);
	}
}

/* Each block is read as it was acknowledged last. */
static void model_read(void)
{
	const struct rbx_behind_page *page;
	uint32_t block, only_count = 0;

	for (block = 0; block < BLOCKS; block++) {
		if (rbx_write_behind_is_only_here(behind, block, 1))
			only_count++; /* and found as follows */
		else
			assert_int_equal(model.quicker[block],
					 model.acknowledged[block]);
		if (model.outstanding[block])
			assert_int_equal(rbx_write_behind_find(behind, block,
							       &page),
					 RBX_BEHIND_PAGE);
	}
	assert_int_equal(behind->only_count, only_count);
}

/* Each block is found as it was acknowledged last. */
static void model_check(void)
{
	const struct rbx_behind_page *page;
	uint32_t block, found;

	for (block = 0; block < BLOCKS; block++) {
		switch (rbx_write_behind_find(behind, block, &page)) {
		case RBX_BEHIND_NEW:
			found = 0;
			break;
		case RBX_BEHIND_DISK:
			found = model.disk[block];
			break;
		case RBX_BEHIND_PAGE:
			found = model.memory[page->memory];
			break;
		default:
			assert_true(model.refused[block]);
			continue;
		}
		if (found != model.outstanding[block])
			assert_int_equal(found, model.acknowledged[block]);
	}
	assert_true(behind->behind_count + behind->free_count <= PAGES);
}

static void model_step(bool is_end)
{
	uint32_t i = below(WRITES), r = below(RUNS);

	if (model.writes[i].state == IDLE && !is_end && below(2))
		model_begin(i);
	else if (model.writes[i].state == BEGUN)
		model_end(i);
	if (model.runs[r].count)
		model_sent(r);
	else if (is_end || below(3))
		model_send(r);
	model_admit();
	model_check();
	model_read();
}

/* All that has begun ends. */
static void model_run(uint64_t seed, bool disk_fails)
{
	uint32_t step;

	model = (struct model){ .disk_fails = disk_fails };
	rbx_random_seed(&model.random, seed);
	behind = rbx_write_behind_init(
		calloc(1, rbx_write_behind_size(BLOCKS, PAGES)), BLOCKS,
		PAGES);
	for (step = 0; step < 3000; step++)
		model_step(false);
	for (step = 0; step < 100000 && !rbx_write_behind_is_idle(behind);
	     step++)
		model_step(true);
	assert_true(rbx_write_behind_is_idle(behind));
	assert_int_equal(behind->behind_count, 0);
	assert_true(model.number > 300);
	assert_true(behind->waits_count > 0);
	free(behind);
}

static void behind_random_writes_equal_model(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		model_run(seed, false);
		for (uint32_t block = 0; block < BLOCKS; block++)
			assert_int_equal(model.disk[block],
					 model.acknowledged[block]);
	}
}

static void behind_random_writes_to_a_failing_disk_equal_model(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++)
		model_run(seed, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(behind_random_writes_equal_model),
		cmocka_unit_test(
			behind_random_writes_to_a_failing_disk_equal_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
