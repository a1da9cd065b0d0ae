// SPDX-License-Identifier: GPL-2.0
/* Mindicator and token tree, with an updater that stops half-way. */
#include "threads.h"
#include "replay.h"
#include "sched/mt/mindicator.h"
#include "sched/mt/token_tree.h"

/* Two sockets of two cores of a queue: leaves, sockets, machine. */
static const struct topo_place square[] = { { 0, 0 }, { 1, 0 },
					    { 2, 1 }, { 3, 1 } };

enum {
	QUEUES = ARRAY_SIZE(square),
};

struct scenario {
	struct topology topo;
	struct mindicator tags;
	struct token_tree slots;
	vtime_t first[QUEUES];		/* initial head tags */
	u32 queue[3];			/* of the three operations */
	vtime_t head_tag[3];
	void (*op[3])(struct scenario *s);	/* on the slots */
	s64 in_use;
	u32 depth;
};

/* ------------------------------------------------------------ mindicator */

static void tags_reset(void *arg)
{
	struct scenario *s = arg;
	u32 q;

	for (q = 0; q < QUEUES; q++)
		mindicator_set(&s->tags, q, s->first[q]);
}

static void tags_check(void *arg)
{
	struct scenario *s = arg;
	u32 n, q;

	for (n = 0; n < s->topo.nr_nodes; n++) {
		const struct topo_node *node = &s->topo.node[n];
		vtime_t least = VTIME_NONE;

		for (q = node->first; q < node->last; q++)
			least = vtime_min_tag(least,
					      mindicator_tag(&s->tags, q));
		threads_check((vtime_t)atomic64_read(&s->tags.node[n].min) ==
			      least);
	}
}

static void set_head_tag(void *arg, u32 i)
{
	struct scenario *s = arg;

	mindicator_set(&s->tags, s->queue[i], s->head_tag[i]);
}

static vtime_t random_tag(struct random *r)
{
	return random_once_in(r, 4) ? VTIME_NONE :
				      (vtime_t)-4 + 2 * random_below(r, 4);
}

static u64 replay_tags(struct scenario *s, struct random *r)
{
	struct replay replay = { tags_reset, set_head_tag, 3, tags_check, s };
	u32 i;

	for (i = 0; i < QUEUES; i++)
		s->first[i] = random_tag(r);
	/* Sets of one queue are serialised, so these are three queues. */
	s->queue[0] = random_below(r, QUEUES);
	s->queue[1] = (s->queue[0] + 1 + random_below(r, 3)) % QUEUES;
	do
		s->queue[2] = random_below(r, QUEUES);
	while (s->queue[2] == s->queue[0] || s->queue[2] == s->queue[1]);
	for (i = 0; i < 3; i++)
		s->head_tag[i] = random_tag(r);
	return replay_all(&replay);
}

/* ------------------------------------------------------------ token tree */

static void slots_reset(void *arg)
{
	struct scenario *s = arg;
	u32 i;

	token_tree_deinit(&s->slots);
	threads_check(!token_tree_init(&s->slots, QUEUES, s->depth));
	s->in_use = 0;
	/* One slot is in the leaf of queue[0], the others are in use. */
	for (i = 0; i < s->depth; i++)
		threads_check(token_take(&s->slots, 0));
	token_put(&s->slots, s->queue[0]);
	s->in_use = s->depth - 1;
}

static void slots_check(void *arg)
{
	struct scenario *s = arg;

	threads_check(token_total(&s->slots) + s->in_use == s->slots.depth);
	while (s->in_use) {
		token_put(&s->slots, 0);
		s->in_use--;
	}
	while (token_steal(&s->slots, 3, NULL))
		s->in_use++;
	threads_check(s->in_use == s->slots.depth);
}

static void op_take(struct scenario *s)
{
	s->in_use += token_take(&s->slots, s->queue[0]);
}

static void op_steal(struct scenario *s)
{
	s->in_use += token_steal(&s->slots, s->queue[1], NULL);
}

static void op_put(struct scenario *s)
{
	if (!s->in_use)
		return;
	s->in_use--;
	token_put(&s->slots, s->queue[0]);
}

static void op_give(struct scenario *s)
{
	token_give(&s->slots, s->queue[0], s->queue[1]);
}

static void op_shrink(struct scenario *s)
{
	token_resize(&s->slots, s->depth > 2 ? s->depth - 2 : 1);
}

static void run_op(void *arg, u32 i)
{
	struct scenario *s = arg;

	s->op[i](s);
}

static u64 replay_slots(struct scenario *s)
{
	void (*const op[])(struct scenario *s) = { op_take, op_steal, op_put,
						   op_give, op_shrink };
	const u32 nr = ARRAY_SIZE(op);
	struct replay replay = { slots_reset, run_op, 3, slots_check, s };
	u64 runs = 0;
	u32 i;

	for (i = 0; i < nr * nr * nr; i++) {
		u32 shrinks;

		s->op[0] = op[i % nr];
		s->op[1] = op[i / nr % nr];
		s->op[2] = op[i / nr / nr];
		shrinks = (s->op[0] == op_shrink) + (s->op[1] == op_shrink) +
			  (s->op[2] == op_shrink);
		/* Resizing is serialised by its caller. */
		if (shrinks <= 1)
			runs += replay_all(&replay);
	}
	return runs;
}

int main(void)
{
	struct random r = random_seeded("mt/replay_trees");
	struct scenario s = { .depth = 3 };
	u64 i, tags = 0, slots = 0;

	threads_check(!topology_init(&s.topo, square, QUEUES));
	threads_check(!mindicator_init(&s.tags, &s.topo));
	threads_check(!token_tree_init(&s.slots, QUEUES, s.depth));
	for (i = 0; i < random_rounds(3000); i++)
		tags += replay_tags(&s, &r);
	for (s.depth = 1; s.depth <= 4; s.depth++)
		for (s.queue[1] = 0; s.queue[1] < QUEUES; s.queue[1]++)
			slots += replay_slots(&s);
	printf("replayed %llu interleavings of tags, %llu of slots\n", tags,
	       slots);
	token_tree_deinit(&s.slots);
	mindicator_deinit(&s.tags);
	topology_deinit(&s.topo);
	return 0;
}
