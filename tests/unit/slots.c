// SPDX-License-Identifier: GPL-2.0
#include "unit.h"
#include "sched/core/slots.h"
#include "tests/machine.h"

/* Queues as a host has them, but always empty. */
struct scenario {
	struct sched sched;
	struct queue queue[MACHINE_QUEUES];
	struct queue *index[MACHINE_QUEUES];
	struct slots slots;
	/* the model: slots of each queue, and queues that were refused one */
	s64 used[MACHINE_QUEUES];
	bool waits[MACHINE_QUEUES];
	bool first[MACHINE_QUEUES];
	bool ranked;	/* some of those have a rank now and then */
	bool borrows;	/* some queues borrow slots */
	u32 depth, limit;
};

static void scenario_init(struct scenario *s, struct random *r, u32 depth)
{
	struct topo_place place[MACHINE_QUEUES];
	u32 i;

	*s = (struct scenario){ .depth = depth, .limit = DEPTH_MAX };
	s->sched.queue = s->index;
	s->sched.nr_queues = machine_random(r, place);
	for (i = 0; i < s->sched.nr_queues; i++) {
		queue_init(&s->queue[i], &s->sched, i);
		s->index[i] = &s->queue[i];
	}
	assert_int_equal(topology_init(&s->sched.topo, place,
				       s->sched.nr_queues),
			 0);
	assert_int_equal(slots_init(&s->slots, &s->sched, depth, true), 0);
}

static void scenario_deinit(struct scenario *s)
{
	slots_deinit(&s->slots);
	topology_deinit(&s->sched.topo);
}

static u32 nr_waiting(const struct scenario *s)
{
	return queue_set_count(&s->slots.ready, s->sched.nr_queues);
}

static s64 model_used(const struct scenario *s)
{
	s64 sum = 0;
	u32 i;

	for (i = 0; i < s->sched.nr_queues; i++)
		sum += s->used[i];
	return sum;
}

static s64 count(const struct scenario *s, const bool *queues)
{
	s64 sum = 0;
	u32 i;

	for (i = 0; i < s->sched.nr_queues; i++)
		sum += queues[i];
	return sum;
}

static s64 model_waiting(const struct scenario *s)
{
	return count(s, s->waits);
}

static s64 model_first(const struct scenario *s)
{
	return count(s, s->first);
}

static s64 model_rivals(const struct scenario *s)
{
	return model_first(s) ? model_first(s) : model_waiting(s);
}

static bool model_is_rival(const struct scenario *s, u32 queue)
{
	return model_first(s) ? s->first[queue] : s->waits[queue];
}

static void rank(struct scenario *s, u32 queue, bool first)
{
	if (!s->waits[queue])
		return;
	slots_rank(&s->slots, queue, first);
	s->first[queue] = first;
}

static void withdraw(struct scenario *s, u32 queue)
{
	slots_withdraw(&s->slots, queue);
	s->waits[queue] = s->first[queue] = false;
}

/* D in force. */
static s64 model_depth(const struct scenario *s)
{
	return min(s->depth, s->limit);
}

/* Negative: a debt. */
static s64 model_free(const struct scenario *s)
{
	return model_depth(s) - model_used(s);
}

static bool model_due(const struct scenario *s, u32 queue, s64 rivals)
{
	return s->used[queue] * rivals < model_depth(s);
}

/*
 * Each woken queue tries to take a slot, and hands over the slots it leaves.  It
 * gets its rank back if it fails.  Meanwhile the rivals of the next woken queue are
 * others, so with ranks that one may be beyond its part.
 */
static void follow(struct scenario *s, struct wake *wake)
{
	bool first;
	u32 queue;

	while ((queue = wake_next(wake)) != QUEUES_MAX) {
		first = s->first[queue];
		assert_true(model_is_rival(s, queue));
		assert_true(s->ranked || model_due(s, queue, model_rivals(s)));
		assert_true(model_free(s) > 0);
		withdraw(s, queue);
		if (slots_take(&s->slots, queue)) {
			s->used[queue]++;
		} else {
			s->waits[queue] = true;
			rank(s, queue, first);
		}
		slots_hand_over(&s->slots, queue, wake);
	}
}

/* No slot is free while a queue waits that is due one. */
static void check(const struct scenario *s)
{
	u32 i;

	assert_int_equal(slots_used(&s->slots), model_used(s));
	assert_int_equal(token_total(&s->slots.tree), model_free(s));
	assert_int_equal(nr_waiting(s), model_waiting(s));
	for (i = 0; i < s->sched.nr_queues; i++) {
		assert_int_equal(atomic64_read(&s->slots.tree.leaf[i].used),
				 s->used[i]);
		assert_false(slots_forgot(&s->slots, i));
		assert_int_equal(queue_set_has(&s->slots.first, i),
				 s->first[i]);
		if (model_is_rival(s, i) && model_due(s, i, model_rivals(s)))
			assert_true(model_free(s) <= 0);
	}
	/* By the pigeonhole principle no queue waits while a slot is free. */
	assert_true(!model_waiting(s) || model_free(s) <= 0);
}

/* Returns the slots that may be in use. */
static s64 most(const struct scenario *s)
{
	return model_depth(s) + slots_beyond((u32)model_depth(s));
}

/* The queue does not wait.  A slot of another leaf may be free beside the debt. */
static void borrow(struct scenario *s, u32 queue)
{
	if (slots_borrow(&s->slots, queue)) {
		s->used[queue]++;
		assert_true(model_used(s) <= most(s));
	} else {
		assert_true(token_in_debt(&s->slots.tree));
	}
}

static void take(struct scenario *s, u32 queue)
{
	s64 rivals = model_rivals(s);
	bool could = model_free(s) > 0 &&
		     (!rivals || model_due(s, queue, rivals + 1)),
	     got;
	struct wake wake;

	if (s->waits[queue])
		return;
	wake_init(&wake);
	got = slots_take(&s->slots, queue);
	/* A slot in the leaf of a rival is handed over below. */
	if (s->borrows && got)
		assert_true(model_used(s) < most(s));
	else
		assert_true(got ? could : rivals || !could);
	if (got)
		s->used[queue]++;
	else
		s->waits[queue] = true;
	slots_hand_over(&s->slots, queue, &wake);
	follow(s, &wake);
}

static void put(struct scenario *s, u32 queue)
{
	struct wake wake;

	if (!s->used[queue])
		return;
	wake_init(&wake);
	s->used[queue]--;
	slots_put(&s->slots, queue, &wake);
	follow(s, &wake);
}

/* All waiting queues are woken, and not only those due a slot. */
static void woken_by_resize(struct scenario *s, struct wake *wake)
{
	u32 queue;

	while ((queue = wake_next(wake)) != QUEUES_MAX) {
		assert_true(s->waits[queue]);
		/* It runs, and wants no slot any more. */
		withdraw(s, queue);
	}
	assert_int_equal(model_rivals(s), 0);
	for (queue = 0; queue < s->sched.nr_queues; queue++) {
		struct wake again;

		wake_init(&again);
		slots_hand_over(&s->slots, queue, &again);
		follow(s, &again);
	}
}

static void resize(struct scenario *s, u32 depth)
{
	struct wake wake;

	wake_init(&wake);
	s->depth = depth;
	slots_resize(&s->slots, depth, &wake);
	woken_by_resize(s, &wake);
}

static void set_limit(struct scenario *s, u32 limit)
{
	bool changes = limit != s->limit;
	struct wake wake;

	wake_init(&wake);
	s->limit = limit;
	slots_limit(&s->slots, limit, &wake);
	if (changes)
		woken_by_resize(s, &wake);
	else
		assert_int_equal(wake_next(&wake), QUEUES_MAX);
}

TEST(slots_match_a_model)
{
	struct random r = random_seeded("unit/slots");
	static struct scenario s;
	u64 round;
	u32 i, step;

	for (round = 0; round < random_rounds(60); round++) {
		bool limited = random_once_in(&r, 2);

		scenario_init(&s, &r, 1 + random_below(&r, 40));
		s.ranked = random_once_in(&r, 2);
		s.borrows = random_once_in(&r, 2);
		for (step = 0; step < 800; step++) {
			u32 queue = random_below(&r, s.sched.nr_queues);

			if (random_once_in(&r, 100))
				resize(&s, 1 + random_below(&r, 40));
			else if (limited && random_once_in(&r, 50))
				set_limit(&s, 1 + random_below(&r, 50));
			else if (s.ranked && random_once_in(&r, 5))
				rank(&s, queue, random_once_in(&r, 2));
			else if (s.borrows && random_once_in(&r, 10))
				borrow(&s, queue);
			else if (random_below(&r, 100) < 55)
				take(&s, queue);
			else
				put(&s, queue);
			check(&s);
		}
		for (i = 0; i < s.sched.nr_queues; i++)
			withdraw(&s, i);
		for (i = 0; i < s.sched.nr_queues; i++)
			while (s.used[i])
				put(&s, i);
		check(&s);
		assert_int_equal(model_free(&s), model_depth(&s));
		scenario_deinit(&s);
	}
}

/* ------------------------------------------------------------ in small cases */

static const struct topo_place four[] = {
	{ 0, 0 }, { 1, 0 }, { 2, 0 }, { 3, 0 }
};

/* Four queues on cores of their own. */
static void four_init(struct scenario *s, u32 depth, bool parts)
{
	u32 i;

	*s = (struct scenario){ .depth = depth,
				.limit = DEPTH_MAX,
				.sched.queue = s->index };
	s->sched.nr_queues = 4;
	for (i = 0; i < 4; i++) {
		queue_init(&s->queue[i], &s->sched, i);
		s->index[i] = &s->queue[i];
	}
	assert_int_equal(topology_init(&s->sched.topo, four, 4), 0);
	assert_int_equal(slots_init(&s->slots, &s->sched, depth, parts), 0);
}

/* Gives all slots back.  No queue waits afterwards. */
static void four_deinit(struct scenario *s)
{
	u32 i;

	for (i = 0; i < 4; i++)
		withdraw(s, i);
	for (i = 0; i < 4; i++)
		while (s->used[i])
			put(s, i);
	scenario_deinit(s);
}

static void take_many(struct scenario *s, u32 queue, u32 n)
{
	for (; n; n--)
		take(s, queue);
}

/* Gives a slot of @queue back; returns the queues that are woken, as bits. */
static u64 put_and_look(struct scenario *s, u32 queue)
{
	u64 woken = 0;
	struct wake wake;
	u32 i;

	wake_init(&wake);
	s->used[queue]--;
	slots_put(&s->slots, queue, &wake);
	while ((i = wake_next(&wake)) != QUEUES_MAX) {
		woken |= BIT_ULL(i);
		s->waits[i] = false;
	}
	return woken;
}

/* The example of slots.h. */
TEST(newcomer_gets_its_part_with_the_next_slot)
{
	static struct scenario s;
	u32 i;

	four_init(&s, 16, true);
	for (i = 0; i < 3; i++)
		take_many(&s, i, i ? 5 : 6);
	for (i = 0; i < 4; i++)
		take(&s, i);
	assert_true(s.waits[0] && s.waits[1] && s.waits[2] && s.waits[3]);
	put(&s, 1);
	assert_int_equal(s.used[3], 1);
	four_deinit(&s);
}

/* Queue 3 has nothing, and is next in the ring.  Queue 1 has a rank. */
TEST(queue_with_a_rank_gets_all_slots)
{
	static struct scenario s;
	u32 i;

	four_init(&s, 4, true);
	take_many(&s, 0, 3);
	take_many(&s, 2, 1);
	for (i = 0; i < 4; i++)
		take(&s, i);
	rank(&s, 1, true);
	for (i = 0; i < 3; i++) {
		put(&s, 0);
		/* It has used the slot, and has another request that waits. */
		take(&s, 1);
		rank(&s, 1, true);
		assert_int_equal(s.used[1], i + 1);
		assert_int_equal(s.used[3], 0);
	}
	/* A queue without a rank does not keep its last slot, either. */
	put(&s, 2);
	assert_int_equal(s.used[1], 4);
	check(&s);
	four_deinit(&s);
}

/* Queue 0 ends a request.  Queue 1 is the nearest, and queue 3 has a rank. */
TEST(without_parts_a_slot_is_for_the_nearest_queue_with_a_rank)
{
	static struct scenario s;
	u32 i;

	four_init(&s, 2, false);
	for (i = 0; i < 2; i++)
		assert_true(slots_try(&s.slots, 0) || slots_wait(&s.slots, 0));
	s.used[0] = 2;
	for (i = 0; i < 4; i++)
		assert_false(slots_try(&s.slots, i) || slots_wait(&s.slots, i));
	slots_rank(&s.slots, 3, true);
	/* Queue 0 waits as well, and keeps no slot while another has a rank. */
	assert_int_equal(put_and_look(&s, 0), BIT_ULL(3));
	assert_true(slots_try(&s.slots, 3));
	assert_false(queue_set_has(&s.slots.first, 3));
	assert_int_equal(put_and_look(&s, 0), BIT_ULL(0));
	s.used[3] = 1;
	four_deinit(&s);
}

/* The queue has left the set without its rank, as tick may have it. */
TEST(rank_without_a_place_in_the_set_is_taken_back)
{
	static struct scenario s;

	four_init(&s, 2, true);
	take_many(&s, 0, 2);
	take(&s, 2);
	slots_rank(&s.slots, 1, true);
	put(&s, 0);
	assert_int_equal(s.used[2], 1);
	check(&s);
	four_deinit(&s);
}

/* Two queues wait.  The slot for the first of them is not for a third queue. */
TEST(free_slot_is_left_to_the_woken_queue)
{
	static struct scenario s;

	four_init(&s, 4, true);
	take_many(&s, 0, 3);
	take(&s, 1);
	take(&s, 1);
	take(&s, 2);
	assert_true(s.waits[1] && s.waits[2]);
	assert_int_equal(put_and_look(&s, 0), BIT_ULL(1));
	/* Queue 0 has two slots.  With queue 2 a part is two as well. */
	assert_false(slots_take(&s.slots, 0));
	assert_int_equal(slots_used(&s.slots), 3);
	slots_withdraw(&s.slots, 0);
	slots_withdraw(&s.slots, 1);
	assert_true(slots_take(&s.slots, 1));
	s.used[1]++;
	four_deinit(&s);
}

/* It need not search the whole tree. */
TEST(woken_queue_finds_its_slot_on_its_path)
{
	static struct scenario s;

	four_init(&s, 2, true);
	take_many(&s, 0, 2);
	take(&s, 3);
	assert_int_equal(put_and_look(&s, 0), BIT_ULL(3));
	assert_true(slots_try(&s.slots, 3));
	s.used[3]++;
	four_deinit(&s);
}

/* A second announcement, of another CPU, does not make the parts smaller. */
TEST(queue_that_waits_twice_counts_once)
{
	static struct scenario s;

	four_init(&s, 2, true);
	take_many(&s, 0, 2);
	take(&s, 1);
	assert_false(slots_wait(&s.slots, 1));
	check(&s);
	four_deinit(&s);
}

/*
 * A part is less than a slot, or one slot and a part of another.  These slots go
 * round, although the nearest queue is the one that gives its slot back.
 */
TEST(rest_of_the_parts_goes_round)
{
	static const u32 depths[] = { 1, 3, 5, 6, 7 };
	static struct scenario s;
	u32 i, d, turn, least;

	for (d = 0; d < ARRAY_SIZE(depths); d++) {
		u32 got[4] = { 0 };

		four_init(&s, depths[d], true);
		for (i = 0; i < 4; i++)
			take_many(&s, i, depths[d]);
		for (turn = 0; turn < 400; turn++) {
			i = turn % 4;
			if (!s.used[i])
				continue;
			got[i]++;
			put(&s, i);
			take(&s, i);
		}
		for (i = 0, least = ~0U; i < 4; i++)
			least = min(least, got[i]);
		assert_true(least >= 40);
		check(&s);
		four_deinit(&s);
	}
}

/* The queue that runs first leaves the slots of the others alone. */
TEST(woken_queues_keep_their_slots)
{
	static struct scenario s;
	struct wake wake;
	u64 woken = 0;
	u32 i;

	four_init(&s, 8, true);
	take_many(&s, 0, 8);
	for (i = 1; i < 4; i++)
		take(&s, i);
	for (i = 0; i < 8; i++)
		woken |= put_and_look(&s, 0);
	assert_int_equal(woken, BIT_ULL(1) | BIT_ULL(2) | BIT_ULL(3));
	wake_init(&wake);
	for (i = 1; i < 4; i++) {
		slots_withdraw(&s.slots, i);
		while (slots_take(&s.slots, i))
			s.used[i]++;
		s.waits[i] = true;
		slots_hand_over(&s.slots, i, &wake);
		assert_in_range(s.used[i], 2, 3);
	}
	follow(&s, &wake);
	check(&s);
	four_deinit(&s);
}

/* D was lowered: the slots that return repay it before a queue gets one. */
TEST(debt_is_paid_before_a_slot_is_free)
{
	static struct scenario s;

	four_init(&s, 4, true);
	take_many(&s, 0, 4);
	take(&s, 1);
	set_limit(&s, 2);
	take(&s, 1);
	assert_int_equal(token_total(&s.slots.tree), -2);
	put(&s, 0);
	put(&s, 0);
	assert_true(s.waits[1]);
	assert_int_equal(token_total(&s.slots.tree), 0);
	put(&s, 0);
	assert_int_equal(s.used[1], 1);
	check(&s);
	four_deinit(&s);
}

TEST(lesser_of_depth_and_limit_is_in_force)
{
	static struct scenario s;

	four_init(&s, 4, true);
	set_limit(&s, 2);
	take_many(&s, 0, 2);
	take(&s, 1);
	assert_true(s.waits[1]);
	resize(&s, 8);
	take(&s, 1);
	assert_true(s.waits[1]);
	/* All waiting queues look again. */
	set_limit(&s, 3);
	take(&s, 1);
	assert_int_equal(s.used[1], 1);
	take(&s, 1);
	assert_true(s.waits[1]);
	set_limit(&s, 3);
	assert_true(s.waits[1]);
	set_limit(&s, DEPTH_MAX);
	take_many(&s, 1, 5);
	assert_int_equal(s.used[1], 6);
	check(&s);
	resize(&s, 1);
	check(&s);
	four_deinit(&s);
}

/* The memory behind the set, and of a used struct slots, means nothing. */
TEST(largest_machine_in_used_memory)
{
	static struct topo_place place[QUEUES_MAX];
	static struct queue queue[QUEUES_MAX];
	static struct queue *index[QUEUES_MAX];
	struct sched sched = { .queue = index, .nr_queues = QUEUES_MAX };
	struct slots slots;
	struct wake wake;
	u32 i;

	for (i = 0; i < QUEUES_MAX; i++) {
		queue_init(&queue[i], &sched, i);
		index[i] = &queue[i];
		place[i].core = i;
	}
	memset(&slots, 0xff, sizeof(slots));
	assert_int_equal(topology_init(&sched.topo, place, QUEUES_MAX), 0);
	assert_int_equal(slots_init(&slots, &sched, 1, false), 0);
	assert_true(slots_try(&slots, 0));
	for (i = 0; i < QUEUES_MAX; i++)
		assert_false(slots_wait(&slots, i));
	assert_int_equal(queue_set_count(&slots.ready, QUEUES_MAX), QUEUES_MAX);
	wake_init(&wake);
	slots_wake_all(&slots, &wake);
	for (i = 0; i < QUEUES_MAX; i++)
		assert_int_equal(wake_next(&wake), i);
	assert_int_equal(wake_next(&wake), QUEUES_MAX);
	slots_put(&slots, 0, &wake);
	slots_deinit(&slots);
	topology_deinit(&sched.topo);
}

/* -------------------------------------------------------------------- leases */

static void end_term(struct scenario *s)
{
	struct wake wake;

	wake_init(&wake);
	slots_end_term(&s->slots, &wake);
}

static void take_polled(struct scenario *s, u32 queue, struct io *io)
{
	*io = (struct io){ .flags = IO_POLLED };
	if (slots_try(&s->slots, queue))
		slots_give_io(&s->slots, queue, io);
}

static void put_back(struct scenario *s, u32 queue, struct io *io)
{
	struct wake wake;

	wake_init(&wake);
	if (slots_take_back(&s->slots, queue, io))
		slots_put(&s->slots, queue, &wake);
}

/* A request that no tenant asks for keeps its slot for one or two terms. */
TEST(lease_ends_after_its_second_term)
{
	static struct scenario s;
	struct io io, late;

	four_init(&s, 8, true);
	take_polled(&s, 0, &late);
	take_polled(&s, 1, &io);
	assert_int_equal(slots_leased(&s.slots), 2);
	end_term(&s);
	assert_int_equal(slots_used(&s.slots), 2);
	put_back(&s, 1, &io);
	assert_int_equal(slots_used(&s.slots), 1);
	end_term(&s);
	assert_int_equal(slots_used(&s.slots), 0);
	/* It ends late, and has no slot to give back. */
	put_back(&s, 0, &late);
	assert_int_equal(slots_used(&s.slots), 0);
	assert_int_equal(slots_leased(&s.slots), 0);
	scenario_deinit(&s);
}

/*
 * Each slot comes back once, whatever the order of terms and ends: the slots in
 * use are those of the leases, and at most one for each request.
 */
TEST(leased_slots_come_back_once)
{
	enum {
		IOS = 24,
		STEPS = 2000,
	};
	struct random r = random_seeded("unit/slots/leases");
	static struct scenario s;
	struct io io[IOS] = { 0 };
	u32 i, step, out;

	four_init(&s, 8, random_once_in(&r, 2));
	for (step = 0; step < STEPS; step++) {
		i = random_below(&r, IOS);
		if (random_once_in(&r, 8)) {
			end_term(&s);
		} else if (io[i].flags) {
			put_back(&s, i % 4, &io[i]);
			io[i].flags = 0;
		} else {
			take_polled(&s, i % 4, &io[i]);
		}
		for (out = 0, i = 0; i < IOS; i++)
			out += !!(io[i].flags & IO_SLOT);
		assert_int_equal(slots_used(&s.slots), slots_leased(&s.slots));
		assert_in_range(slots_used(&s.slots), 0, min(out, 8U));
	}
	for (i = 0; i < IOS; i++)
		put_back(&s, i % 4, &io[i]);
	assert_int_equal(slots_used(&s.slots), 0);
	scenario_deinit(&s);
}

TEST(init_fails_without_memory)
{
	struct random r = random_seeded("unit/slots");
	static struct scenario s;
	u32 allowed;

	scenario_init(&s, &r, 8);
	slots_deinit(&s.slots);
	for (allowed = 0; allowed < 2; allowed++) {
		port_zalloc_fail_after(allowed);
		assert_int_equal(slots_init(&s.slots, &s.sched, 8, true),
				 -ENOMEM);
		port_zalloc_fail_never();
		/* What was not freed is found when no pointer to it is left. */
		memset(&s.slots, 0, sizeof(s.slots));
	}
	topology_deinit(&s.sched.topo);
}
