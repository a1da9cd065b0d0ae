/* SPDX-License-Identifier: GPL-2.0 */
/* Machines of random shape, for tests of the structures over the topology. */
#ifndef MQFAIR_MACHINE_H
#define MQFAIR_MACHINE_H

#include "tests/random.h"
#include "sched/mt/topology.h"

enum {
	MACHINE_QUEUES	= 4 * 6 * 4,
};

/*
 * Fills @place for a machine of up to 4 sockets, each with up to 6 cores, each
 * with up to 4 queues.  The ids have gaps, as those of real machines do.
 * Returns the number of queues, at most MACHINE_QUEUES.
 */
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
