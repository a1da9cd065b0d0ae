/* SPDX-License-Identifier: GPL-2.0 */
/* Machines of random shape, for the tests of what stands on the topology. */
#ifndef MQFAIR_MACHINE_H
#define MQFAIR_MACHINE_H

#include "tests/random.h"
#include "sched/mt/topology.h"

enum {
	MACHINE_QUEUES	= 4 * 6 * 4,
};

/* Up to 4 sockets of up to 6 cores of up to 4 queues; ids are not dense. */
static inline u32 machine_random(struct random *r, struct topo_place *place)
{
	u32 sockets = 1 + random_below(r, 4), nr = 0;
	u32 socket, core, queue;

	for (socket = 0; socket < sockets; socket++) {
		u32 cores = 1 + random_below(r, 6);

		for (core = 0; core < cores; core++) {
			u32 queues = 1 + random_below(r, 4);

			for (queue = 0; queue < queues; queue++)
				place[nr++] = (struct topo_place){
					.core = 1000 - 100 * socket + 7 * core,
					.socket = 50 - 3 * socket,
				};
		}
	}
	return nr;
}

#endif /* MQFAIR_MACHINE_H */
