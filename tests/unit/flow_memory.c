// SPDX-License-Identifier: GPL-2.0
/* The pieces of memory of a flow: flow_alloc(), flow_add_queue(). */
#include "unit.h"
#include "sched/core/flow.h"
#include "sched/core/policies.h"
#include "sched/core/sched.h"

/* An allocator that records its pieces, and fails at number `fail_at`. */
struct recorder {
	struct flow_memory memory;
	u32 nr, fail_at;
	size_t largest, bytes;
	u32 kib;		/* rounded up to the sizes of kmalloc() */
};

static u32 pieces_left;

static u32 size_class_kib(size_t bytes)
{
	u32 kib = 1;

	while (kib * 1024 < bytes)
		kib *= 2;
	return kib;
}

static void *record_alloc(const struct flow_memory *m, size_t bytes)
{
	struct recorder *r = container_of(m, struct recorder, memory);

	if (++r->nr == r->fail_at)
		return NULL;
	r->largest = max(r->largest, bytes);
	r->bytes += bytes;
	r->kib += size_class_kib(bytes);
	pieces_left++;
	return port_zalloc(bytes);
}

static void record_free(void *piece)
{
	assert_non_null(piece);
	pieces_left--;
	port_free(piece);
}

#define RECORD_MEMORY							\
	{ .alloc = record_alloc, .free = record_free,			\
	  .most = FLOW_PIECE_BYTES }

/*
 * The kernel's part of the first piece: its struct group_host has 128 bytes.  The locks
 * of the test are larger than the kernel's, and its flow has a cache line more.
 */
#define BEFORE	(128 - 64)

static struct flow *record(struct recorder *r, const struct sched_ops *ops,
			   u32 queues, u32 fail_at)
{
	*r = (struct recorder){
		.memory = RECORD_MEMORY,
		.fail_at = fail_at,
	};
	return flow_alloc_whole(&r->memory, ops, queues, BEFORE);
}

/* Each queue's memory is aligned, zeroed, and apart from all other. */
static void assert_whole(struct flow *f, const struct sched_ops *ops,
			 u32 queues)
{
	u32 bytes = (u32)sizeof(struct flow_queue) + ops->flow_queue_bytes;
	u32 i, j;

	memset(flow_own(f), 0xff, ops->flow_bytes);
	for (i = 0; i < queues; i++) {
		const u8 *queue = (u8 *)f->fq[i];

		assert_int_equal((unsigned long)queue % 64, 0);
		for (j = 0; j < bytes; j++)
			assert_int_equal(queue[j], 0);
		memset(f->fq[i], 0xff, bytes);
		assert_ptr_equal(flow_queue_own(f, i), f->fq[i] + 1);
	}
	assert_int_equal(f->nr_queues, queues);
}

/*
 * One allocation of 128 queues took 32 KiB, and 64 KiB under kyber-fair.  The
 * kernel has as many pages in a row only if its memory is not fragmented.
 */
TEST(flow_of_a_wide_machine_comes_in_pages)
{
	static const u32 widths[] = { 1, 2, 8, 16, 31, 64, 128, 200 };
	struct recorder r;
	struct flow *f;
	u32 i, w;

	for (i = 0; sched_policies[i]; i++) {
		for (w = 0; w < ARRAY_SIZE(widths); w++) {
			f = record(&r, sched_policies[i], widths[w], 0);
			assert_non_null(f);
			assert_true(r.largest <= 4096);
			assert_true(widths[w] > 8 || r.nr == 1);
			assert_true(r.bytes >=
				    BEFORE + flow_size(sched_policies[i],
						       widths[w]));
			assert_whole(f, sched_policies[i], widths[w]);
			flow_free(f, record_free, BEFORE);
			assert_int_equal(pieces_left, 0);
		}
	}
}

/* A flow comes whole or not at all. */
TEST(failed_piece_leaves_nothing_behind)
{
	struct recorder r;
	struct flow *f;
	u32 i, k, nr;

	for (i = 0; sched_policies[i]; i++) {
		f = record(&r, sched_policies[i], 128, 0);
		flow_free(f, record_free, BEFORE);
		nr = r.nr;
		assert_true(nr > 3);
		for (k = 1; k <= nr; k++) {
			assert_null(record(&r, sched_policies[i], 128, k));
			assert_int_equal(r.nr, k);
			assert_int_equal(pieces_left, 0);
		}
	}
}

/* doc/common.md has this table. */
TEST(flow_takes_the_documented_memory)
{
	static const u32 widths[] = { 1, 8, 32, 128 };
	static const struct {
		const char *name;
		u32 kib[ARRAY_SIZE(widths)];
	} row[] = {
		{ "mqfq", { 2, 4, 6, 20 } },	    { "ifq", { 2, 4, 6, 20 } },
		{ "kyber-fair", { 4, 4, 12, 36 } }, { "wdt", { 4, 4, 8, 20 } },
		{ "hwabc", { 4, 4, 9, 28 } },
	};
	struct recorder r;
	u32 i, w;

	for (i = 0; i < ARRAY_SIZE(row); i++) {
		const struct sched_ops *ops = sched_find(row[i].name);

		for (w = 0; w < ARRAY_SIZE(widths); w++) {
			flow_free(record(&r, ops, widths[w], 0), record_free,
				  BEFORE);
			assert_int_equal(r.kib, row[i].kib[w]);
		}
	}
}

/* A recorder's flow that is of @s, with its first piece. */
static struct flow *record_first(struct recorder *r, struct sched *s,
				 const struct sched_ops *ops, u32 queues)
{
	struct flow *f;

	*s = (struct sched){ .ops = ops, .nr_queues = queues };
	*r = (struct recorder){
		.memory = RECORD_MEMORY,
	};
	share_tree_init(&s->share);
	f = flow_alloc(&r->memory, ops, queues, BEFORE);
	assert_non_null(f);
	flow_init(f, s, NULL, 100);
	return f;
}

/* An idle flow has a page, and a queue gets its memory when it is used. */
TEST(queue_gets_its_memory_with_its_first_request)
{
	const struct sched_ops ops = { .flow_bytes = 65,
				       .flow_queue_bytes = 130 };
	struct recorder r;
	struct sched s;
	struct flow *f = record_first(&r, &s, &ops, 128);
	u32 q, has = 0, all;

	assert_int_equal(r.nr, 1);
	assert_int_equal(r.kib, 4);
	assert_true(flow_has_queue(f, 0));
	assert_false(flow_has_queue(f, 127));
	assert_int_equal(f->fq[127]->inserted, 0);

	assert_true(flow_add_queue(f, &r.memory, 100));
	assert_int_equal(r.nr, 2);
	assert_true(flow_has_queue(f, 100));
	assert_int_equal((unsigned long)f->fq[100] % 64, 0);
	/* A piece that is there is not made again. */
	assert_true(flow_add_queue(f, &r.memory, 100));
	assert_true(flow_add_queue(f, &r.memory, 0));
	assert_int_equal(r.nr, 2);
	for (q = 0; q < 128; q++)
		has += flow_has_queue(f, q);
	assert_int_equal(has, f->first_queues + f->piece_queues);

	/* Without memory nothing changes. */
	assert_false(flow_has_queue(f, 50));
	r.fail_at = r.nr + 1;
	assert_false(flow_add_queue(f, &r.memory, 50));
	assert_false(flow_has_queue(f, 50));

	for (q = 0; q < 128; q++)
		assert_true(flow_add_queue(f, &r.memory, q));
	all = r.nr;
	assert_whole(f, &ops, 128);
	for (q = 0; q < 128; q++)
		assert_true(flow_add_queue(f, &r.memory, q));
	assert_int_equal(r.nr, all);
	flow_free(f, record_free, BEFORE);
	assert_int_equal(pieces_left, 0);
}

/* An interrupt cannot make memory.  The work counts, and the queue is wanted. */
TEST(work_of_a_cpu_without_memory_counts)
{
	const struct sched_ops ops = { .name = "plain" };
	struct flow_totals t;
	struct recorder r;
	struct sched s;
	struct flow *f = record_first(&r, &s, &ops, 128);

	f->fq[0]->inserted = 3;
	atomic64_set(&f->fq[0]->done, 1);
	atomic64_set(&f->fq[0]->cost, 4096);
	assert_int_equal(f->wanted, 0);
	assert_int_equal(flow_count_elsewhere(f, 127, 1, 8192, 50), 1);
	assert_int_equal(flow_count_elsewhere(f, 126, 1, 8192, 25), 2);
	assert_int_equal(f->wanted, 128);
	flow_totals(f, &t);
	assert_int_equal(t.inserted, 3);
	assert_int_equal(t.done, 3);
	assert_int_equal(t.cost, 4096 + 2 * 8192);
	assert_int_equal(t.service_ns, 75);
	flow_free(f, record_free, BEFORE);
}

/* See doc/common.md. */
TEST(idle_flow_takes_a_page)
{
	struct recorder r;
	u32 i, queues;

	for (i = 0; sched_policies[i]; i++)
		for (queues = 1; queues <= 200; queues++) {
			r = (struct recorder){
				.memory = RECORD_MEMORY,
			};
			flow_free(flow_alloc(&r.memory, sched_policies[i],
					     queues, BEFORE),
				  record_free, BEFORE);
			assert_int_equal(r.nr, 1);
			assert_true(r.kib <= 4);
		}
}

/* The first piece is as large as it must be, and holds no queue. */
TEST(flow_of_1024_queues_has_its_pointers_in_one_piece)
{
	struct recorder r;
	struct flow *f = record(&r, sched_find("mqfq"), 1024, 0);

	assert_true(r.largest > 8192 && r.largest < 12288);
	assert_int_equal(f->first_queues, 0);
	assert_whole(f, sched_find("mqfq"), 1024);
	flow_free(f, record_free, BEFORE);
	assert_int_equal(pieces_left, 0);
}
