// SPDX-License-Identifier: GPL-2.0
#include "scene.h"

#include "host.h"
#include "load.h"

static u64 finish(struct host *h)
{
	struct host_flow *hf;
	u64 done = 0;

	host_finish(h);
	for (hf = h->flows; hf; hf = hf->next)
		done += hf->stats.ios;
	if (!host_failed(h))
		return done;
	fprintf(stderr, "%s\n", h->failure);
	return 0;
}

u64 scene_run(const struct scene *scene)
{
	struct host_params p = {
		.seed = 1,
		.nr_queues = scene->queues,
		.ops = scene->ops,
		.sched_tags = scene->tags,
		.tag_maps = 1,
		.quotas = true,
		.audit_at_end = true,
		.device = { .slots = scene->slots, .base_ns = 100000 },
	};
	struct host_flow *root;
	struct load **load;
	struct host *h;
	u64 done;
	u32 i;

	sched_params_init(scene->ops, &p.sched);
	p.sched.depth = scene->slots;
	load = port_zalloc(scene->flows * sizeof(struct load *));
	h = host_create(&p);
	port_assert(load && h);
	root = host_flow_create(h, NULL, 0);
	for (i = 0; i < scene->flows; i++)
		load[i] = load_create(
			h, &(struct load_params){
				   .flow = host_flow_create(h, root,
							    100 + i % 7 * 50),
				   .nr_queues = scene->used ?: scene->queues,
				   .depth = scene->depth,
				   .bytes = 4096,
				   .write_permille = 300 });
	host_run(h, scene->run_ns);
	done = finish(h);
	host_destroy(h);
	for (i = 0; i < scene->flows; i++)
		load_destroy(load[i]);
	port_free(load);
	return done;
}
