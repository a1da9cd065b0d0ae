/* SPDX-License-Identifier: GPL-2.0 */
/*
 * text - numbers and lists in the text that sim-run reads and writes
 */
#ifndef MQFAIR_SIM_TEXT_H
#define MQFAIR_SIM_TEXT_H

#include "port.h"

/* A buffer of the caller that text_add() appends to; the rest is cut off. */
struct text {
	char *at, *end;
};

struct text text_of(char *buffer, size_t size);

__attribute__((format(printf, 2, 3)))
void text_add(struct text *t, const char *fmt, ...);

/* Appends @names, up to NULL, separated by commas. */
void text_list(struct text *t, const char *const *names);

/* Reads a decimal number of [@least, @most]; false for anything else. */
bool text_number(const char *word, u64 least, u64 most, u64 *value);

/* Returns the index of @word in @names, or that of the NULL at their end. */
u32 text_find(const char *const *names, const char *word);

#endif /* MQFAIR_SIM_TEXT_H */
