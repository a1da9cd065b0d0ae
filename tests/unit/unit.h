/* SPDX-License-Identifier: GPL-2.0 */
/* The headers of every unit test, in the order that cmocka wants. */
#ifndef MQFAIR_UNIT_H
#define MQFAIR_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/random.h"

#endif /* MQFAIR_UNIT_H */
