// SPDX-License-Identifier: GPL-2.0
/* trace - the one place that defines the tracepoints of trace.h */
#define CREATE_TRACE_POINTS
#include "trace.h"
