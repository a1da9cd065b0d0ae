// SPDX-License-Identifier: GPL-2.0
/* The model's event queue; an object file cannot be in two modules. */
#include "../../sched/core/heap.c"
