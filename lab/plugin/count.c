// SPDX-License-Identifier: GPL-2.0
/*
 * count - counts the instructions that a guest executes, by address
 *
 * QEMU translates straight runs of guest instructions into blocks.  Each block
 * of the guest's kernel has a counter that generated code adds to; all of user
 * space is one sum.  When the guest's program `mark` runs, the plugin writes the
 * instructions since the previous mark as a section:
 *
 *	section 3
 *	user 81234			instructions
 *	ffffffff81234560 7 1 1200	a block: address, instructions, locked, times
 *
 * Blocks that did not run are not listed.  An address has a line for each
 * length of block that starts there: counting exactly, QEMU cuts blocks short
 * when an event is due.  Locked instructions are those of x86.  A repeated string instruction counts once for each
 * repetition, as guest time does.
 *
 * The counters are plain, so there must be one virtual CPU.
 *
 *	-plugin count.so,out=FILE
 */
#include "mark.h"
#include "qemu-plugin.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BUCKETS	= 1 << 16,
};

#define KERNEL_START	(1ULL << 63)

struct block {
	struct block *next;
	uint64_t address;
	uint64_t length;	/* instructions */
	uint64_t locked;	/* of them: atomic beside other processors */
	uint64_t times;		/* written by generated code */
	uint64_t written;	/* times, at the end of the last section */
};

static struct block *buckets[BUCKETS];
static uint64_t user, user_written;
static unsigned int section;
static FILE *out;

int qemu_plugin_version = QEMU_PLUGIN_VERSION;

static void fail(const char *what)
{
	fprintf(stderr, "count: %s\n", what);
	_Exit(1);
}

static struct block **bucket_of(uint64_t address)
{
	return &buckets[(address * 0x9e3779b97f4a7c15ULL) >> 48];
}

/* A block that is translated again goes on with its counter. */
static struct block *block_of(uint64_t address, uint64_t length)
{
	struct block **bucket = bucket_of(address);
	struct block *b;

	for (b = *bucket; b; b = b->next)
		if (b->address == address && b->length == length)
			return b;
	b = calloc(1, sizeof(*b));
	if (!b)
		fail("out of memory");
	b->address = address;
	b->length = length;
	b->next = *bucket;
	*bucket = b;
	return b;
}

static void section_end(void)
{
	struct block *b;
	size_t i;

	fprintf(out, "section %u\nuser %" PRIu64 "\n", section++,
		user - user_written);
	user_written = user;
	for (i = 0; i < BUCKETS; i++) {
		for (b = buckets[i]; b; b = b->next) {
			if (b->times == b->written)
				continue;
			fprintf(out,
				"%" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64
				"\n",
				b->address, b->length, b->locked,
				b->times - b->written);
			b->written = b->times;
		}
	}
	if (fflush(out))
		fail("cannot write the counts");
}

static void marked(unsigned int vcpu, void *arg)
{
	(void)vcpu;
	(void)arg;
	section_end();
}

static void find_marks(struct qemu_plugin_tb *tb)
{
	static const uint8_t mark[MARK_BYTES] = { MARK };
	size_t i, n = qemu_plugin_tb_n_insns(tb);

	for (i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (qemu_plugin_insn_size(insn) == MARK_BYTES &&
		    !memcmp(qemu_plugin_insn_data(insn), mark, MARK_BYTES))
			qemu_plugin_register_vcpu_insn_exec_cb(
				insn, marked, QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
}

/*
 * Whether an instruction of a 64-bit x86 kernel is a locked one.  A kernel for one
 * processor replaces each lock prefix by 3e, which also stands before indirect jumps
 * (ff /4) without a check of their target.  An exchange with memory needs no prefix.
 */
static bool is_locked(const uint8_t *code, size_t size)
{
	bool rex = size > 1 && (code[0] & 0xf0) == 0x40;

	if (size > 2 && code[0] == 0x3e)
		return code[1] != 0xff || (code[2] >> 3 & 7) != 4;
	if (code[0] == 0xf0)
		return true;
	code += rex;
	return size > 1U + rex && (code[0] & 0xfe) == 0x86 && code[1] < 0xc0;
}

static uint64_t locked_in(struct qemu_plugin_tb *tb)
{
	size_t i, n = qemu_plugin_tb_n_insns(tb);
	uint64_t locked = 0;

	for (i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		locked += is_locked(qemu_plugin_insn_data(insn),
				    qemu_plugin_insn_size(insn));
	}
	return locked;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	uint64_t address = qemu_plugin_tb_vaddr(tb);
	size_t length = qemu_plugin_tb_n_insns(tb);

	(void)id;
	if (address >= KERNEL_START) {
		struct block *b = block_of(address, length);

		b->locked = locked_in(tb);
		qemu_plugin_register_vcpu_tb_exec_inline(
			tb, QEMU_PLUGIN_INLINE_ADD_U64, &b->times, 1);
	} else {
		find_marks(tb);
		qemu_plugin_register_vcpu_tb_exec_inline(
			tb, QEMU_PLUGIN_INLINE_ADD_U64, &user, length);
	}
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
			char **argv)
{
	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fprintf(stderr, "count: the one argument is out=FILE\n");
		return -1;
	}
	if (!info->system_emulation || info->system.max_vcpus != 1) {
		fprintf(stderr,
			"count: only a machine with one CPU can be counted\n");
		return -1;
	}
	out = fopen(argv[0] + 4, "w");
	if (!out) {
		perror(argv[0] + 4);
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
