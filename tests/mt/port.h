/* SPDX-License-Identifier: GPL-2.0 */
/*
 * port.h - the primitives of sched/ on C11 atomics and POSIX threads
 *
 * The names and their meaning are those of the kernel; the simulator and the
 * module provide the same list.  READ_ONCE() and WRITE_ONCE() are relaxed
 * atomic accesses, so a thread sanitizer does not report a race on them.  Every
 * read-modify-write is fully ordered: other threads see the accesses before it
 * earlier than the accesses after it.
 */
#ifndef MQFAIR_PORT_H
#define MQFAIR_PORT_H

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;
typedef int32_t s32;
typedef long long s64;

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define BIT_ULL(n)	(1ULL << (n))
#define __port_cacheline	__attribute__((aligned(64)))

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

/* Comparing the addresses makes the compiler compare the types. */
#define PORT_SAME_TYPE(a, b)	((void)(&(a) == &(b)))

#define min(a, b) ({				\
	__typeof__(a) min_a_ = (a);		\
	__typeof__(b) min_b_ = (b);		\
	PORT_SAME_TYPE(min_a_, min_b_);		\
	min_a_ < min_b_ ? min_a_ : min_b_; })

#define max(a, b) ({				\
	__typeof__(a) max_a_ = (a);		\
	__typeof__(b) max_b_ = (b);		\
	PORT_SAME_TYPE(max_a_, max_b_);		\
	max_a_ > max_b_ ? max_a_ : max_b_; })

#define clamp(v, lo, hi) ({			\
	__typeof__(v) clamp_v_ = (v);		\
	__typeof__(lo) clamp_lo_ = (lo);	\
	__typeof__(hi) clamp_hi_ = (hi);	\
	PORT_SAME_TYPE(clamp_v_, clamp_lo_);	\
	PORT_SAME_TYPE(clamp_v_, clamp_hi_);	\
	clamp_v_ < clamp_lo_ ? clamp_lo_ :	\
		clamp_v_ > clamp_hi_ ? clamp_hi_ : clamp_v_; })

/*
 * Tests built with PORT_PERTURB yield the processor now and then before a
 * shared access, so that few processors show many interleavings.
 *
 * They can also replay one interleaving.  port_interrupt_at() runs @fn just
 * before the (@access + 1)th shared access from now, as another processor might
 * do.  It does not count accesses while this thread holds a port_lock.  @fn may
 * set a second interrupt.  port_interrupt_done() returns whether all interrupts
 * that were set have run, and cancels the rest.
 */
#ifdef PORT_PERTURB
void port_perturb(void);
void port_interrupt_at(u32 access, void (*fn)(void *arg), void *arg);
bool port_interrupt_done(void);
#else
static inline void port_perturb(void)
{
}
#endif

#define READ_ONCE(x) \
	(port_perturb(), __atomic_load_n(&(x), __ATOMIC_RELAXED))
#define WRITE_ONCE(x, v) \
	(port_perturb(), __atomic_store_n(&(x), (v), __ATOMIC_RELAXED))
#define smp_load_acquire(p) \
	(port_perturb(), __atomic_load_n((p), __ATOMIC_ACQUIRE))
#define smp_store_release(p, v) \
	(port_perturb(), __atomic_store_n((p), (v), __ATOMIC_RELEASE))

typedef struct {
	s64 counter;
} atomic64_t;

static inline s64 atomic64_read(const atomic64_t *a)
{
	port_perturb();
	return __atomic_load_n(&a->counter, __ATOMIC_RELAXED);
}

static inline void atomic64_set(atomic64_t *a, s64 v)
{
	port_perturb();
	__atomic_store_n(&a->counter, v, __ATOMIC_RELAXED);
}

static inline s64 atomic64_read_acquire(const atomic64_t *a)
{
	port_perturb();
	return __atomic_load_n(&a->counter, __ATOMIC_ACQUIRE);
}

static inline void atomic64_set_release(atomic64_t *a, s64 v)
{
	port_perturb();
	__atomic_store_n(&a->counter, v, __ATOMIC_RELEASE);
}

/*
 * The sequentially consistent operations of C do not order the plain accesses
 * around them, but those of the kernel do.  On x86 a locked instruction orders
 * them; elsewhere a fence is necessary.  A thread sanitizer does not understand
 * fences.  It runs one access at a time, so it does not need one either.
 */
static inline void port_full_order(void)
{
#if !defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

static inline s64 atomic64_fetch_add(s64 v, atomic64_t *a)
{
	s64 old;

	port_perturb();
	old = __atomic_fetch_add(&a->counter, v, __ATOMIC_SEQ_CST);
	port_full_order();
	return old;
}

static inline s64 atomic64_fetch_or(s64 v, atomic64_t *a)
{
	s64 old;

	port_perturb();
	old = __atomic_fetch_or(&a->counter, v, __ATOMIC_SEQ_CST);
	port_full_order();
	return old;
}

static inline s64 atomic64_fetch_and(s64 v, atomic64_t *a)
{
	s64 old;

	port_perturb();
	old = __atomic_fetch_and(&a->counter, v, __ATOMIC_SEQ_CST);
	port_full_order();
	return old;
}

static inline s64 atomic64_fetch_andnot(s64 v, atomic64_t *a)
{
	return atomic64_fetch_and(~v, a);
}

static inline s64 atomic64_xchg(atomic64_t *a, s64 v)
{
	s64 old;

	port_perturb();
	old = __atomic_exchange_n(&a->counter, v, __ATOMIC_SEQ_CST);
	port_full_order();
	return old;
}

/* On failure it stores the present value in *@old. */
static inline bool atomic64_try_cmpxchg(atomic64_t *a, s64 *old, s64 v)
{
	bool swapped;

	port_perturb();
	swapped = __atomic_compare_exchange_n(&a->counter, old, v, false,
					      __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED);
	port_full_order();
	return swapped;
}

static inline s64 atomic64_cmpxchg(atomic64_t *a, s64 old, s64 v)
{
	atomic64_try_cmpxchg(a, &old, v);
	return old;
}

static inline s64 atomic64_add_return(s64 v, atomic64_t *a)
{
	return atomic64_fetch_add(v, a) + v;
}

static inline s64 atomic64_sub_return(s64 v, atomic64_t *a)
{
	return atomic64_fetch_add(-v, a) - v;
}

static inline s64 atomic64_inc_return(atomic64_t *a)
{
	return atomic64_add_return(1, a);
}

static inline s64 atomic64_dec_return(atomic64_t *a)
{
	return atomic64_sub_return(1, a);
}

static inline void atomic64_add(s64 v, atomic64_t *a)
{
	(void)atomic64_fetch_add(v, a);
}

static inline void atomic64_sub(s64 v, atomic64_t *a)
{
	(void)atomic64_fetch_add(-v, a);
}

static inline void atomic64_inc(atomic64_t *a)
{
	atomic64_add(1, a);
}

static inline void atomic64_dec(atomic64_t *a)
{
	atomic64_sub(1, a);
}

/*
 * A counter of one CPU.  A thread may complete requests of any queue, and there are
 * no CPUs, so that an addition is atomic here.
 */
typedef atomic64_t port_counter;

static inline void port_count(port_counter *c, s64 n)
{
	atomic64_add(n, c);
}

static inline u64 port_counted(port_counter *c)
{
	return (u64)atomic64_read(c);
}

#define port_cpu_begin()	0U
#define port_cpu_end()		((void)0)

/* Index of the lowest set bit; @x is not 0. */
static inline u32 port_ffs64(u64 x)
{
	return (u32)__builtin_ctzll(x);
}

/* One more than the index of the highest set bit; 0 for 0. */
static inline u32 port_fls64(u64 x)
{
	return x ? 64 - (u32)__builtin_clzll(x) : 0;
}

/* Returns the number of bits that are set. */
static inline u32 port_count64(u64 x)
{
	return (u32)__builtin_popcountll(x);
}

__extension__ typedef unsigned __int128 port_u128;

static inline u64 div64_u64(u64 a, u64 b)
{
	return a / b;
}

static inline u64 mul_u64_u32_shr(u64 a, u32 b, u32 shift)
{
	return (u64)(((port_u128)a * b) >> shift);
}

static inline u64 mul_u64_u64_shr(u64 a, u64 b, u32 shift)
{
	return (u64)(((port_u128)a * b) >> shift);
}

static inline u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 c)
{
	return (u64)((port_u128)a * b / c);
}

__attribute__((noreturn))
void port_assert_failed(const char *what, const char *file, int line);

#ifdef NDEBUG
#define port_assert(cond)	((void)sizeof(cond))
#else
#define port_assert(cond)	\
	(likely(cond) ? (void)0 : port_assert_failed(#cond, __FILE__, __LINE__))
#endif

struct port_lock {
	pthread_mutex_t mutex;
	pthread_t owner;	/* while `held`; written by the holder */
	bool held;
};

void port_lock_init(struct port_lock *l);
void port_lock_deinit(struct port_lock *l);
unsigned long port_lock(struct port_lock *l);
void port_unlock(struct port_lock *l, unsigned long flags);
bool port_lock_is_mine(const struct port_lock *l);

#define port_assert_held(l)	port_assert(port_lock_is_mine(l))

/* The host sets this: does the calling thread hold the lock of @q? */
struct queue;
extern bool (*port_queue_is_mine)(const struct queue *q);

#define port_assert_queue_held(q)	port_assert(port_queue_is_mine(q))

/* Zeroed memory at the start of a cache line; NULL when there is none. */
void *port_zalloc(size_t size);
void port_free(void *p);

/* The next @n allocations of this thread succeed, all later ones fail. */
void port_zalloc_fail_after(unsigned int n);
void port_zalloc_fail_never(void);

#endif /* MQFAIR_PORT_H */
