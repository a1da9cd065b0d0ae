// SPDX-License-Identifier: GPL-2.0
/* A simulated host (sim/host.h), with the mqfq scheduler, on a drive. */
#include "tests/unit/unit.h"
#include "fixture.h"
#include "sched/core/policies.h"
#include "sim/host.h"
#include "sim/load.h"

enum {
	MS = 1000 * US,
};

static struct flash *drive(const char *model)
{
	const struct flash_config c = {
		.params = flash_model(model),
		.bytes = 1ULL << 30,
		.owners = 16,
		.ftl = FLASH_FTL_HOST,
	};
	struct flash *f = flash_create(&c);

	assert_non_null(f);
	return f;
}

static struct host *host_on(struct flash *f)
{
	struct host_params p = {
		.seed = 1,
		.nr_queues = 2,
		.ops = &mqfq_ops,
		.device = { .flash = f },
	};
	struct host *h;

	sched_params_init(&mqfq_ops, &p.sched);
	h = host_create(&p);
	assert_non_null(h);
	return h;
}

static void check_end(struct host *h, struct flash *f)
{
	host_finish(h);
	if (host_failed(h))
		fail_msg("%s", h->failure);
	assert_null(audit(f));
}

static void latency_is_that_of_the_drive(void **state)
{
	struct flash *f = drive("980pro");
	struct host *h = host_on(f);
	struct host_flow *root = host_flow_create(h, NULL, 0);
	struct host_flow *flow = host_flow_create(h, root, 100);
	struct load *l = load_create(h, &(struct load_params){
						.flow = flow,
						.nr_queues = 1,
						.depth = 1,
						.bytes = 4096,
					});

	(void)state;
	fixture_fill(f, flow->id);
	host_run(h, 100 * MS);
	check_end(h, f);
	assert_in_range(flow->stats.latency.sum_ns / flow->stats.ios, 59 * US,
			61 * US);
	assert_in_range(flow->stats.ios, 1650, 1700);
	host_destroy(h);
	load_destroy(l);
	flash_destroy(f);
}

static void pages_of_a_removed_flow_go_to_its_parent(void **state)
{
	struct flash *f = drive("p3700");
	struct host *h = host_on(f);
	struct host_flow *root = host_flow_create(h, NULL, 0);
	struct host_flow *parent = host_flow_create(h, root, 100);
	struct host_flow *child = host_flow_create(h, parent, 100);
	u32 id = child->id;
	struct flash_usage usage;
	u64 written;
	struct load *l = load_create(h, &(struct load_params){
						.flow = child,
						.nr_queues = 2,
						.depth = 16,
						.bytes = 16384,
						.write_permille = 1000,
						.first_page = 1000,
						.pages = 4000,
						.in_order = true,
					});

	(void)state;
	host_run(h, 50 * MS);
	check_end(h, f);
	written = child->stats.bytes / 4096;
	assert_true(written > 10000);
	assert_true(flash_host_usage(f, id, &usage));
	assert_int_equal(usage.written, written);
	/* Every page of its range has been written, and no other. */
	assert_int_equal(usage.valid, 4000);
	assert_int_equal(flash_where(f, 999), FLASH_NOWHERE);
	assert_int_equal(flash_where(f, 5000), FLASH_NOWHERE);
	host_flow_destroy(child);
	assert_false(flash_host_usage(f, id, &usage));
	assert_true(flash_host_usage(f, parent->id, &usage));
	assert_int_equal(usage.valid, 4000);
	host_destroy(h);
	load_destroy(l);
	flash_destroy(f);
}

/* Runs two readers of equal weight beside a writer that keeps GC busy. */
static void run_mixed(u64 ios[3], struct flash_stats *stats)
{
	struct flash *f = drive("p4500");
	struct host *h = host_on(f);
	struct host_flow *root = host_flow_create(h, NULL, 0);
	struct host_flow *flow[3];
	struct load *l[3];
	struct flash_fill fill = {
		.pages = flash_pages(f),
		.overwrites = flash_pages(f),
		.seed = 1,
	};
	u32 i;

	while (flash_fill(f, &fill, 10000))
		;
	for (i = 0; i < 3; i++) {
		flow[i] = host_flow_create(h, root, 100);
		l[i] = load_create(h,
				   &(struct load_params){
					   .flow = flow[i],
					   .nr_queues = 2,
					   .depth = 32,
					   .bytes = 4096,
					   .write_permille = i == 2 ? 1000 : 0,
				   });
	}
	host_run(h, 200 * MS);
	check_end(h, f);
	for (i = 0; i < 3; i++)
		ios[i] = flow[i]->stats.ios;
	*stats = flash_stats(f);
	host_destroy(h);
	for (i = 0; i < 3; i++)
		load_destroy(l[i]);
	flash_destroy(f);
}

static void shares_hold_during_gc(void **state)
{
	u64 ios[3], again[3];
	struct flash_stats stats, same;

	(void)state;
	run_mixed(ios, &stats);
	assert_true(stats.copied > 1000);
	assert_true(ios[2] > 1000);
	assert_in_range(ios[0] * 100 / ios[1], 95, 105);
	/* The same seed gives the same run. */
	run_mixed(again, &same);
	assert_memory_equal(ios, again, sizeof(ios));
	assert_memory_equal(&stats, &same, sizeof(stats));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(latency_is_that_of_the_drive),
		cmocka_unit_test(pages_of_a_removed_flow_go_to_its_parent),
		cmocka_unit_test(shares_hold_during_gc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
