// SPDX-License-Identifier: GPL-2.0
/* mark - run in a guest, it begins a new section of counted instructions */
#include "mark.h"

#define STRING(...)	#__VA_ARGS__
#define BYTES(...)	".byte " STRING(__VA_ARGS__)

int main(void)
{
	__asm__ volatile(BYTES(MARK));
	return 0;
}
