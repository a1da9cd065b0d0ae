/* SPDX-License-Identifier: GPL-2.0 */
/*
 * flat - the functions of the token tree that are alike if all slots are in one place
 *
 * Every queue can take any free slot.  So no leaf is left out, and no slot is moved
 * to another queue.  The file that replaces the tree includes this, and has the other
 * functions.
 */
#ifndef MQFAIR_ABLATION_FLAT_H
#define MQFAIR_ABLATION_FLAT_H

#include "sched/mt/token_tree.h"

bool token_steal(struct token_tree *t, u32 queue,
		 const struct queue_set *except)
{
	(void)except;
	return token_take(t, queue);
}

bool token_give(struct token_tree *t, u32 from, u32 to)
{
	(void)t;
	(void)from;
	(void)to;
	return false;
}

bool token_root_take(struct token_tree *t)
{
	return token_take(t, 0);
}

bool token_take_except(struct token_tree *t, u32 queue,
		       const struct queue_set *except)
{
	(void)except;
	return token_take(t, queue);
}

bool token_peek_except(const struct token_tree *t,
		       const struct queue_set *except)
{
	(void)except;
	return token_total(t) > 0;
}

/* No request goes beyond D. */
bool token_owe(struct token_tree *t, u32 most)
{
	(void)t;
	(void)most;
	return false;
}

#endif /* MQFAIR_ABLATION_FLAT_H */
