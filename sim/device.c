// SPDX-License-Identifier: GPL-2.0
#include "device.h"

u64 device_service_ns(const struct device_params *p, bool write, u32 bytes)
{
	u64 ns = p->base_ns + p->ns_per_kib * bytes / 1024;

	return write ? ns * max(p->write_times, 1U) : ns;
}

void device_init(struct device *d, struct engine *e,
		 const struct device_params *params,
		 void (*done)(struct device_cmd *cmd))
{
	*d = (struct device){ .engine = e, .params = *params, .done = done };
	d->tail = &d->head;
}

static void device_serve(struct device *d, struct device_cmd *cmd)
{
	d->busy++;
	event_arm(d->engine, &cmd->event,
		  d->engine->now + device_service_ns(&d->params, cmd->write,
						     cmd->bytes));
}

static void device_served(struct event *ev)
{
	struct device_cmd *cmd = container_of(ev, struct device_cmd, event);
	struct device *d = cmd->device;
	struct device_cmd *next = d->head;

	d->busy--;
	if (next) {
		d->head = next->next;
		if (!d->head)
			d->tail = &d->head;
		device_serve(d, next);
	}
	d->done(cmd);
}

void device_start(struct device *d, struct device_cmd *cmd, bool write,
		  u32 bytes)
{
	event_init(&cmd->event, device_served);
	cmd->device = d;
	cmd->write = write;
	cmd->bytes = bytes;
	cmd->next = NULL;
	if (d->busy < d->params.slots) {
		device_serve(d, cmd);
		return;
	}
	*d->tail = cmd;
	d->tail = &cmd->next;
}
