// SPDX-License-Identifier: GPL-2.0
/* The order of lanes, and its keys after changes of shares and of a flow. */
#include "unit.h"
#include "core/tag_order.h"

enum {
	FLOWS	= 2,
	IOS	= 8,
	COST	= 4096,
};

struct fixture {
	struct sched sched;
	struct queue queue;
	struct tag_order order;
	struct flow *root;
	struct flow *flow[FLOWS];
	struct io io[FLOWS][IOS];
};

static const struct sched_ops tagged_ops = {
	.name			= "tagged",
	.flow_queue_bytes	= sizeof(struct tag_lane),
};

static struct tag_lane *lane_of(const struct fixture *x, u32 flow)
{
	return flow_queue_own(x->flow[flow], 0);
}

static struct flow *flow_new(struct fixture *x, struct flow *parent, u32 weight)
{
	struct flow *f = port_zalloc(flow_size(&tagged_ops, 1));

	assert_non_null(f);
	flow_init(f, &x->sched, parent, weight);
	((struct tag_lane *)flow_queue_own(f, 0))->lane.flow = f;
	return f;
}

static void fixture_init(struct fixture *x, u32 weight0, u32 weight1)
{
	memset(x, 0, sizeof(*x));
	x->sched.ops = &tagged_ops;
	x->sched.nr_queues = 1;
	share_tree_init(&x->sched.share);
	port_lock_init(&x->sched.active_lock);
	queue_init(&x->queue, &x->sched, 0);
	x->root = flow_new(x, NULL, WEIGHT_DEFAULT);
	x->flow[0] = flow_new(x, x->root, weight0);
	x->flow[1] = flow_new(x, x->root, weight1);
}

/*
 * All flows are active before the first io has a tag, so no share changes.  The
 * look at the empty order notes the generation of the shares.
 */
static void wake_up(struct fixture *x)
{
	struct flow_start start;
	u32 i;

	for (i = 0; i < FLOWS; i++)
		flow_charge(x->flow[i], 0, 0, false, &start);
	assert_null(tag_order_first(&x->order, &x->queue, 0));
}

/* @n ios come to the flow's lane. */
static void come(struct fixture *x, u32 flow, u32 n)
{
	struct tag_lane *l = lane_of(x, flow);
	struct flow_start start;
	u32 i;

	for (i = 0; i < n; i++) {
		struct io *io = &x->io[flow][i];
		bool joins = !l->lane.fifo.head;

		flow_charge(x->flow[flow], COST, 0, true, &start);
		*io = (struct io){ .flow = x->flow[flow], .pos = start.pos };
		io_list_append(&l->lane.fifo, io);
		if (joins)
			tag_order_add(&x->order, l, start.tag, start.epoch);
	}
}

/* Takes the first io out.  Returns the lane that had it. */
static const struct tag_lane *take_first(struct fixture *x)
{
	struct tag_lane *l = tag_order_first(&x->order, &x->queue, 0);

	assert_non_null(l);
	assert_true(l->node.key == tag_lane_first(l));
	io_list_take(&l->lane.fifo);
	tag_order_took(&x->order);
	atomic64_dec(&l->lane.flow->queued);
	return l;
}

static void fixture_deinit(struct fixture *x)
{
	u32 i;

	while (tag_order_first(&x->order, &x->queue, 0))
		take_first(x);
	for (i = 0; i < FLOWS; i++) {
		flow_exit(x->flow[i]);
		port_free(x->flow[i]);
	}
	flow_exit(x->root);
	port_free(x->root);
	port_lock_deinit(&x->sched.active_lock);
}

/* The next ios are of the flows with these digits. */
static void expect(struct fixture *x, const char *digits)
{
	for (; *digits; digits++)
		assert_ptr_equal(take_first(x), lane_of(x, *digits - '0'));
}

TEST(an_empty_order_has_no_first)
{
	struct fixture x;

	fixture_init(&x, 100, 100);
	assert_null(tag_order_first(&x.order, &x.queue, 0));
	assert_null(tag_order_top(&x.order));
	fixture_deinit(&x);
}

TEST(lanes_go_by_start_tag)
{
	struct fixture x;

	fixture_init(&x, 300, 100);
	wake_up(&x);
	come(&x, 0, 6);
	come(&x, 1, 2);
	expect(&x, "01000100");
	assert_null(tag_order_first(&x.order, &x.queue, 0));
	fixture_deinit(&x);
}

/* The second flow waits deep in the heap with a tag of its old share. */
TEST(a_new_weight_orders_all_lanes_anew)
{
	struct fixture x;

	fixture_init(&x, 300, 100);
	wake_up(&x);
	come(&x, 0, 8);
	come(&x, 1, 8);
	expect(&x, "01");
	assert_true(share_set_weight(&x.sched.share, &x.flow[0]->group, 100));
	assert_true(share_set_weight(&x.sched.share, &x.flow[1]->group, 300));
	expect(&x, "11");
	assert_int_equal(x.queue.stats.rebuilds, 1);
	fixture_deinit(&x);
}

/* Its tags have grown by the clamp, though its key says that it is first. */
TEST(a_flow_that_was_moved_loses_its_turn)
{
	struct fixture x;
	struct io *io;

	fixture_init(&x, 100, 100);
	wake_up(&x);
	come(&x, 0, 4);
	come(&x, 1, 4);
	io = lane_of(&x, 0)->lane.fifo.head;
	flow_clamp_lag(x.flow[0], io->pos, 5 * COST, 0);
	expect(&x, "11101000");
	assert_int_equal(x.queue.stats.rebuilds, 0);
	fixture_deinit(&x);
}

/* Both lanes have tag 0: the one that came first goes first. */
TEST(equals_go_in_order)
{
	struct fixture x;

	fixture_init(&x, 100, 100);
	wake_up(&x);
	come(&x, 1, 1);
	come(&x, 0, 1);
	expect(&x, "10");
	fixture_deinit(&x);
}
