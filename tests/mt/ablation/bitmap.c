// SPDX-License-Identifier: GPL-2.0
/*
 * The interface of the token tree on a bitmap with one cache line per word.  A
 * queue looks for a clear bit in the word where it found the last one, then in
 * all other words.
 *
 * It is for comparison, as in Hedayati et al., Multi-Queue Fair Queueing, ATC
 * 2019, figure 11.  Slots have no identity here, so a queue that gives one back
 * clears any bit, nearest first.  D does not change.
 */
#include "flat.h"

static u32 words_of(const struct token_tree *t)
{
	return (t->depth + 63) / 64;
}

/* Bits of word @i that stand for a slot. */
static u64 word_mask(const struct token_tree *t, u32 i)
{
	u32 rest = t->depth - 64 * i;

	return rest < 64 ? BIT_ULL(rest) - 1 : ~0ULL;
}

/* The word in which a queue last found a bit.  In leaf[] hints follow the words. */
static atomic64_t *hint_of(const struct token_tree *t, u32 queue)
{
	return &t->leaf[words_of(t) + queue].free;
}

int token_tree_init(struct token_tree *t, u32 nr_queues, u32 depth)
{
	u32 q;

	t->nr_queues = nr_queues;
	t->depth = depth;
	t->leaf = port_zalloc((words_of(t) + nr_queues) * sizeof(*t->leaf));
	if (!t->leaf)
		return -ENOMEM;
	for (q = 0; q < nr_queues; q++)
		atomic64_set(hint_of(t, q), (s64)q * words_of(t) / nr_queues);
	return 0;
}

void token_tree_deinit(struct token_tree *t)
{
	port_free(t->leaf);
}

/* Sets a clear bit if @used, or clears a set one.  False if there is none. */
static bool flip(struct token_tree *t, u32 queue, bool used)
{
	atomic64_t *hint = hint_of(t, queue);
	u32 words = words_of(t), start = (u32)atomic64_read(hint), n;

	for (n = 0; n < words; n++) {
		u32 i = (start + n) % words;
		atomic64_t *word = &t->leaf[i].free;
		u64 is = (u64)atomic64_read(word);
		u64 fit = (used ? ~is : is) & word_mask(t, i);

		for (; fit; fit &= fit - 1) {
			s64 bit = (s64)(fit & -fit);
			s64 old = used ? atomic64_fetch_or(bit, word) :
					 atomic64_fetch_andnot(bit, word);

			if (!(old & bit) == used) {
				if (i != start)
					atomic64_set(hint, i);
				return true;
			}
		}
	}
	return false;
}

bool token_take(struct token_tree *t, u32 queue)
{
	return flip(t, queue, true);
}

bool token_peek(const struct token_tree *t, u32 queue)
{
	(void)queue;
	return token_total(t) > 0;
}

void token_put(struct token_tree *t, u32 queue)
{
	/* Other threads put and take: a bit may change after it was read. */
	while (!flip(t, queue, false))
		;
}

void token_resize(struct token_tree *t, u32 depth)
{
	port_assert(depth == t->depth);
}

s64 token_in_leaves(const struct token_tree *t)
{
	(void)t;
	return 0;
}

s64 token_total(const struct token_tree *t)
{
	s64 free = t->depth;
	u32 i;

	for (i = 0; i < words_of(t); i++)
		free -= __builtin_popcountll(
			(u64)atomic64_read(&t->leaf[i].free));
	return free;
}
