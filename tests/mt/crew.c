// SPDX-License-Identifier: GPL-2.0
#include "crew.h"

#include <unistd.h>

enum {
	CREW_MIN = 4,
	CREW_MAX = 16,
};

struct start {
	struct member member;
	void (*work)(struct member *me, void *arg);
};

u32 crew_size(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return (u32)clamp(cpus + 2, (long)CREW_MIN, (long)CREW_MAX);
}

static void *crew_start(void *arg)
{
	struct start *start = arg;

	pthread_barrier_wait(&start->member.crew->barrier);
	start->work(&start->member, start->member.crew->arg);
	return NULL;
}

void crew_run(u32 nr, struct random *random,
	      void (*work)(struct member *me, void *arg), void *arg)
{
	struct crew crew = { .nr = nr, .arg = arg };
	struct start start[CREW_MAX];
	pthread_t thread[CREW_MAX];
	u32 i;

	crew_check(nr <= CREW_MAX);
	pthread_barrier_init(&crew.barrier, NULL, nr);
	for (i = 0; i < nr; i++) {
		start[i] = (struct start){
			.member = { .crew = &crew, .index = i,
				    .random.state = random_next(random) },
			.work = work,
		};
		crew_check(!pthread_create(&thread[i], NULL, crew_start,
					   &start[i]));
	}
	for (i = 0; i < nr; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&crew.barrier);
}

void crew_meet(struct member *me, void (*look)(void *arg), void *arg)
{
	if (pthread_barrier_wait(&me->crew->barrier) ==
	    PTHREAD_BARRIER_SERIAL_THREAD)
		look(arg);
	pthread_barrier_wait(&me->crew->barrier);
}
