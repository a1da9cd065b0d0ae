// SPDX-License-Identifier: GPL-2.0
/* heap - the model's event queue; two modules cannot share an object file */
#include "../../sched/core/heap.c"
