// SPDX-License-Identifier: GPL-2.0
#include "device.h"

void device_init(struct device *d, u32 room)
{
	port_lock_init(&d->lock);
	d->io = port_zalloc(room * sizeof(struct io *));
	port_assert(d->io);
	d->nr = 0;
	d->room = room;
}

void device_deinit(struct device *d)
{
	port_assert(d->nr == 0);
	port_free(d->io);
	port_lock_deinit(&d->lock);
}

void device_start(struct device *d, struct io *io)
{
	unsigned long flags = port_lock(&d->lock);

	port_assert(d->nr < d->room);
	d->io[d->nr++] = io;
	port_unlock(&d->lock, flags);
}

struct io *device_finish(struct device *d, struct random *r)
{
	unsigned long flags = port_lock(&d->lock);
	struct io *io = NULL;

	if (d->nr) {
		u32 i = random_below(r, d->nr);

		io = d->io[i];
		d->io[i] = d->io[--d->nr];
	}
	port_unlock(&d->lock, flags);
	return io;
}
