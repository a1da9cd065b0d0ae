// SPDX-License-Identifier: GPL-2.0
#include "text.h"

#include <stdarg.h>

struct text text_of(char *buffer, size_t size)
{
	buffer[0] = '\0';
	return (struct text){ .at = buffer, .end = buffer + size };
}

void text_add(struct text *t, const char *fmt, ...)
{
	size_t room = (size_t)(t->end - t->at);
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(t->at, room, fmt, args);
	va_end(args);
	port_assert(n >= 0);
	t->at += min((size_t)n, room - 1);
}

void text_list(struct text *t, const char *const *names)
{
	u32 i;

	for (i = 0; names[i]; i++)
		text_add(t, "%s%s", i ? ", " : "", names[i]);
}

bool text_number(const char *word, u64 least, u64 most, u64 *value)
{
	char *end;

	if (*word < '0' || *word > '9')
		return false;
	errno = 0;
	*value = strtoull(word, &end, 10);
	return !errno && !*end && *value >= least && *value <= most;
}

u32 text_find(const char *const *names, const char *word)
{
	u32 i = 0;

	while (names[i] && strcmp(names[i], word))
		i++;
	return i;
}
