// SPDX-License-Identifier: GPL-2.0
/* A simulated host on a drive of flash/. */
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

static void ended_well(struct host *h, struct flash *f)
{
	host_finish(h);
	if (host_failed(h))
		fail_msg("%s", h->failure);
	assert_null(audit(f));
}

static void latency_is_the_drives(void **state)
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
	ended_well(h, f);
	assert_in_range(flow->stats.latency.sum_ns / flow->stats.ios, 59 * US,
			61 * US);
	assert_in_range(flow->stats.ios, 1650, 1700);
	host_destroy(h);
	load_destroy(l);
	flash_destroy(f);
}

static void flows_own_pages_until_they_go(void **state)
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
	ended_well(h, f);
	written = child->stats.bytes / 4096;
	assert_true(written > 10000);
	assert_true(flash_host_usage(f, id, &usage));
	assert_int_equal(usage.written, written);
	/* Within its range, and all of that by now. */
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

/* Two equal readers beside a writer, whom collecting keeps busy. */
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
	ended_well(h, f);
	for (i = 0; i < 3; i++)
		ios[i] = flow[i]->stats.ios;
	*stats = flash_stats(f);
	host_destroy(h);
	for (i = 0; i < 3; i++)
		load_destroy(l[i]);
	flash_destroy(f);
}

static void shares_hold_while_the_drive_collects(void **state)
{
	u64 ios[3], again[3];
	struct flash_stats stats, same;

	(void)state;
	run_mixed(ios, &stats);
	assert_true(stats.copied > 1000);
	assert_true(ios[2] > 1000);
	assert_in_range(ios[0] * 100 / ios[1], 95, 105);
	/* The same seed, the same course. */
	run_mixed(again, &same);
	assert_memory_equal(ios, again, sizeof(ios));
	assert_memory_equal(&stats, &same, sizeof(stats));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(latency_is_the_drives),
		cmocka_unit_test(flows_own_pages_until_they_go),
		cmocka_unit_test(shares_hold_while_the_drive_collects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
