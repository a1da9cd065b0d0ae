/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mark - the instruction by which a guest's program tells the plugin that a
 * section ends: a seven-byte no-op, nopl MARK(%rax), that no compiler emits
 */
#ifndef LAB_MARK_H
#define LAB_MARK_H

#define MARK		0x0f, 0x1f, 0x80, 0x6d, 0x71, 0x66, 0x71
#define MARK_BYTES	7

#endif /* LAB_MARK_H */
