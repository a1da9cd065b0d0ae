/* SPDX-License-Identifier: GPL-2.0 */
/*
 * port - the names that the code in sched/ and flash/ uses, for the simulator
 *
 * One thread runs everything.  So each shared access is a plain one, and a lock
 * is a flag.  A lock that is taken twice is a bug and ends the program.  Signed
 * counters wrap, as the kernel's atomics do.  min, max and clamp insist on one
 * type, as those of the oldest supported kernel do.
 */
#ifndef MQFAIR_SIM_PORT_H
#define MQFAIR_SIM_PORT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int32_t s32;
/* u64 is long long, as in the kernel, even where long has 64 bits. */
typedef unsigned long long u64;
typedef long long s64;
__extension__ typedef unsigned __int128 port_u128;

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

#undef static_assert
#define static_assert(cond, ...)	_Static_assert(cond, #cond)

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define BIT_ULL(n)	(1ULL << (n))

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

/* The comparison of addresses makes the compiler warn if the types differ. */
#define port_pick(a, op, b) __extension__ ({	\
	__typeof__(a) pick_a = (a);		\
	__typeof__(b) pick_b = (b);		\
	(void)(&pick_a == &pick_b);		\
	pick_a op pick_b ? pick_a : pick_b;	\
})
#define min(a, b)	port_pick(a, <, b)
#define max(a, b)	port_pick(a, >, b)
#define clamp(v, lo, hi) __extension__ ({			\
	__typeof__(v) clamp_v = (v);				\
	__typeof__(lo) clamp_lo = (lo);				\
	__typeof__(hi) clamp_hi = (hi);				\
	(void)(&clamp_v == &clamp_lo);				\
	(void)(&clamp_v == &clamp_hi);				\
	clamp_v < clamp_lo ? clamp_lo :				\
		clamp_v > clamp_hi ? clamp_hi : clamp_v;	\
})

#define READ_ONCE(x)		(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v)	(*(volatile __typeof__(x) *)&(x) = (v))
#define smp_load_acquire(p)	READ_ONCE(*(p))
#define smp_store_release(p, v)	WRITE_ONCE(*(p), v)

#define __port_cacheline	__attribute__((aligned(64)))

_Noreturn static inline void port_bug(const char *what, const char *file,
				      int line)
{
	fprintf(stderr, "%s:%d: bug: not %s\n", file, line, what);
	abort();
}

#define port_assert(cond) \
	((cond) ? (void)0 : port_bug(#cond, __FILE__, __LINE__))

typedef struct {
	s64 counter;
} atomic64_t;

static inline s64 atomic64_read(const atomic64_t *v)
{
	return v->counter;
}

static inline void atomic64_set(atomic64_t *v, s64 i)
{
	v->counter = i;
}

#define atomic64_read_acquire	atomic64_read
#define atomic64_set_release	atomic64_set

static inline s64 atomic64_xchg(atomic64_t *v, s64 i)
{
	s64 old = v->counter;

	v->counter = i;
	return old;
}

static inline bool atomic64_try_cmpxchg(atomic64_t *v, s64 *old, s64 new)
{
	s64 seen = v->counter, expected = *old;

	*old = seen;
	if (seen == expected)
		v->counter = new;
	return seen == expected;
}

static inline s64 atomic64_fetch_add(s64 i, atomic64_t *v)
{
	return atomic64_xchg(v, (s64)((u64)v->counter + (u64)i));
}

static inline s64 atomic64_fetch_or(s64 i, atomic64_t *v)
{
	return atomic64_xchg(v, v->counter | i);
}

static inline s64 atomic64_fetch_andnot(s64 i, atomic64_t *v)
{
	return atomic64_xchg(v, v->counter & ~i);
}

static inline s64 atomic64_inc_return(atomic64_t *v)
{
	atomic64_fetch_add(1, v);
	return v->counter;
}

#define atomic64_add(i, v)	((void)atomic64_fetch_add(i, v))
#define atomic64_sub(i, v)	atomic64_add(-(s64)(i), v)
#define atomic64_inc(v)		atomic64_add(1, v)
#define atomic64_dec(v)		atomic64_add(-1, v)

/* A counter of one CPU; here the only thread is every CPU. */
typedef atomic64_t port_counter;

#define port_count(c, n)	atomic64_add(n, c)
#define port_counted(c)		((u64)atomic64_read(c))
#define port_cpu_begin()	0U
#define port_cpu_end()		((void)0)

/* Returns the index, from 0, of the lowest bit that is set; @x is not 0. */
static inline u32 port_ffs64(u64 x)
{
	return (u32)__builtin_ctzll(x);
}

/* Returns the number of significant bits; 0 for 0. */
static inline u32 port_fls64(u64 x)
{
	return x ? 64 - (u32)__builtin_clzll(x) : 0;
}

/* Returns the number of bits that are set. */
static inline u32 port_count64(u64 x)
{
	return (u32)__builtin_popcountll(x);
}

static inline u64 div64_u64(u64 a, u64 b)
{
	return a / b;
}

static inline u64 mul_u64_u32_shr(u64 a, u32 mul, unsigned int shift)
{
	return (u64)(((port_u128)a * mul) >> shift);
}

static inline u64 mul_u64_u64_shr(u64 a, u64 mul, unsigned int shift)
{
	return (u64)(((port_u128)a * mul) >> shift);
}

static inline u64 mul_u64_u64_div_u64(u64 a, u64 mul, u64 div)
{
	return (u64)((port_u128)a * mul / div);
}

struct port_lock {
	bool held;
};

static inline void port_lock_init(struct port_lock *l)
{
	l->held = false;
}

static inline unsigned long port_lock(struct port_lock *l)
{
	port_assert(!l->held);
	l->held = true;
	return 0;
}

static inline void port_unlock(struct port_lock *l, unsigned long flags)
{
	(void)flags;
	port_assert(l->held);
	l->held = false;
}

#define port_assert_held(l)	port_assert((l)->held)

struct queue;

/* sim/host.c has this one, because the host owns the queue locks. */
void port_assert_queue_held(const struct queue *q);

/* Returns zeroed memory, aligned to a cache line, or NULL. */
static inline void *port_zalloc(size_t size)
{
	void *p = aligned_alloc(64, (size + 63) / 64 * 64);

	return p ? memset(p, 0, size) : NULL;
}

static inline void port_free(void *p)
{
	free(p);
}

#endif /* MQFAIR_SIM_PORT_H */
