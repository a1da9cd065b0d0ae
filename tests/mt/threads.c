// SPDX-License-Identifier: GPL-2.0
#include "threads.h"

#include <unistd.h>

enum {
	THREADS_MIN = 4,
	THREADS_MAX = 16,
};

struct start {
	struct member member;
	void (*work)(struct member *me, void *arg);
};

u32 threads_size(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return (u32)clamp(cpus + 2, (long)THREADS_MIN, (long)THREADS_MAX);
}

u32 threads_meetings(u32 meetings)
{
	return meetings;
}

u32 threads_steps(u32 steps)
{
	return steps;
}

void threads_seen(bool seen, const char *what)
{
	if (!seen)
		port_assert_failed(what, __FILE__, __LINE__);
}

void threads_watch(void (*check)(void *arg), void *arg)
{
	(void)check;
	(void)arg;
}

static void *threads_start(void *arg)
{
	struct start *start = arg;

	pthread_barrier_wait(&start->member.threads->barrier);
	start->work(&start->member, start->member.threads->arg);
	return NULL;
}

void threads_run(u32 nr, struct random *random,
		 void (*work)(struct member *me, void *arg), void *arg)
{
	struct threads threads = { .nr = nr, .arg = arg };
	struct start start[THREADS_MAX];
	pthread_t thread[THREADS_MAX];
	u32 i;

	threads_check(nr <= THREADS_MAX);
	pthread_barrier_init(&threads.barrier, NULL, nr);
	for (i = 0; i < nr; i++) {
		start[i] = (struct start){
			.member = { .threads = &threads,
				    .index = i,
				    .random.state = random_next(random) },
			.work = work,
		};
		threads_check(!pthread_create(&thread[i], NULL, threads_start,
					      &start[i]));
	}
	for (i = 0; i < nr; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&threads.barrier);
}

void threads_meet(struct member *me, void (*check)(void *arg), void *arg)
{
	if (pthread_barrier_wait(&me->threads->barrier) ==
	    PTHREAD_BARRIER_SERIAL_THREAD)
		check(arg);
	pthread_barrier_wait(&me->threads->barrier);
}
