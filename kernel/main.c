// SPDX-License-Identifier: GPL-2.0
/* main - the module starts its parts in order and ends them in reverse */
#include <linux/utsname.h>

#include "cgroup.h"
#include "goals.h"
#include "register.h"
#include "wake.h"
#include "weights.h"

/* A kernel with types of a known shape may still behave like none of those. */
static void __init report_load(void)
{
	if (MQFAIR_IS_TESTED && !IS_ENABLED(MQFAIR_TEST_UNTESTED))
		pr_info("mqfair: version %s, tested on Linux %s\n",
			THIS_MODULE->version, MQFAIR_TESTED);
	else
		pr_warn("mqfair: version %s was never tested on Linux %s, only on %s\n",
			THIS_MODULE->version, init_utsname()->release,
			MQFAIR_TESTED);
}

/* A constant of the kernel that the module was built for; `mqfair check` reads it. */
static bool schedules_flush_data = COMPAT_SCHEDULES_FLUSH_DATA;

static int refuse(const char *value, const struct kernel_param *param)
{
	return -EPERM;
}

static const struct kernel_param_ops constant_ops = {
	.set = refuse,
	.get = param_get_bool,
};

module_param_cb(schedules_flush_data, &constant_ops, &schedules_flush_data,
		0444);
MODULE_PARM_DESC(schedules_flush_data, "read only: writes with FUA or PREFLUSH reach the scheduler");

/* Of the io controller: their names begin with "io.". */
static struct cftype cgroup_files[] = {
	{
		.name = "mqfair.weight",
		.flags = CFTYPE_NOT_ON_ROOT,
		.seq_show = weights_show,
		.write = weights_write,
	},
	{
		.name = "mqfair.latency",
		.flags = CFTYPE_NOT_ON_ROOT,
		.seq_show = goals_show,
		.write = goals_write,
	},
	{ }
};

static int __init mqfair_init(void)
{
	int ret;

	ret = compat_init();
	if (ret)
		return ret;
	ret = cgroups_init(cgroup_files);
	if (ret)
		return ret;
	ret = wake_workqueue_create();
	if (ret)
		goto cgroups;
	ret = elevator_register();
	if (ret)
		goto workqueue;
	report_load();
	return 0;
workqueue:
	wake_workqueue_destroy();
cgroups:
	cgroups_exit();
	return ret;
}

static void __exit mqfair_exit(void)
{
	elevator_unregister();
	wake_workqueue_destroy();
	cgroups_exit();
}

module_init(mqfair_init);
module_exit(mqfair_exit);
MODULE_LICENSE("GPL");
MODULE_VERSION("0.3.0");
MODULE_DESCRIPTION("Fair sharing of fast drives between cgroups");
