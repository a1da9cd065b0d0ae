# SPDX-License-Identifier: GPL-2.0
"""The needs of the modules: tables of types and functions that the generator checks."""

from __future__ import annotations

from dataclasses import dataclass, field

_BLK_CGROUP = "use a kernel built with CONFIG_BLK_CGROUP=y"
_BLK_MQ = "this kernel's block layer is not one that kernel/compat knows"


@dataclass(frozen=True)
class Struct:
    """A structure that must be in the BTF. It is written out unless a public header has it."""

    name: str
    hint: str = _BLK_MQ


STRUCTS: tuple[Struct, ...] = (
    Struct("elevator_mq_ops"),
    Struct("elevator_type"),
    Struct("elevator_queue"),
    Struct("elv_fs_entry"),
    Struct("blk_mq_ctx"),
    Struct("blk_mq_alloc_data"),
    Struct("blk_mq_debugfs_attr", "use a kernel built with CONFIG_BLK_DEBUG_FS=y"),
    Struct("blk_mq_tags"),
    Struct("blkcg", _BLK_CGROUP),
    Struct("blkcg_gq", _BLK_CGROUP),
    Struct("blkcg_policy", _BLK_CGROUP),
    Struct("blkcg_policy_data", _BLK_CGROUP),
    Struct("blkg_policy_data", _BLK_CGROUP),
)

# Public structures with members that the module uses. The generated assertions compare their
# layout with the BTF, so that the compiler refuses the headers of another build of the kernel.
COMPARED: tuple[str, ...] = (
    "request_queue",
    "request",
    "bio",
    "blk_mq_hw_ctx",
    "blk_mq_tag_set",
    "gendisk",
    "sbitmap",
    "sbitmap_queue",
    "cgroup_subsys_state",
)

# Members that the module uses. If a kernel lacks one, the message names it; the compiler would
# print a page of errors.
MEMBERS: tuple[str, ...] = (
    "elevator_type.ops",
    "elevator_type.elevator_attrs",
    "elevator_type.elevator_name",
    "elevator_type.elevator_owner",
    "elevator_type.queue_debugfs_attrs",
    "elevator_queue.type",
    "elevator_queue.elevator_data",
    "elevator_queue.kobj",
    "blk_mq_ctx.hctxs",
    "blk_mq_alloc_data.q",
    "blk_mq_alloc_data.hctx",
    "blk_mq_alloc_data.shallow_depth",
    "blk_mq_debugfs_attr.show",
    "blk_mq_debugfs_attr.seq_ops",
    "blk_mq_tags.bitmap_tags",
    "blkcg.css",
    "blkcg.blkg_tree",
    "blkcg.blkg_hint",
    "blkcg.cpd",
    "blkcg_gq.q",
    "blkcg_gq.blkcg",
    "blkcg_gq.parent",
    "blkcg_gq.refcnt",
    "blkcg_gq.pd",
    "blkcg_policy.plid",
    "blkcg_policy.dfl_cftypes",
    "blkcg_policy.cpd_alloc_fn",
    "blkcg_policy.cpd_free_fn",
    "blkcg_policy.pd_alloc_fn",
    "blkcg_policy.pd_free_fn",
    "blkcg_policy.pd_stat_fn",
    "blkcg_policy_data.blkcg",
    "blkg_policy_data.blkg",
    "request.elv.priv",
    "request.mq_hctx",
    "request_queue.elevator",
    "request_queue.queue_ctx",
    "request_queue.mq_freeze_depth",
    "request_queue.root_blkg",
    "bio.bi_blkg",
)

# A form is a signature, as model.Btf.signature() spells it without const, and the feature that it
# proves. The feature is "" if the form proves none.
Forms = dict[str, str]

_QUEUE = "struct request_queue *"
_HCTX = "struct blk_mq_hw_ctx *"
_POLICY = "struct blkcg_policy *"

# The hooks that the module fills in: a member of elevator_mq_ops and the forms that compat knows.
HOOKS: dict[str, Forms] = {
    "init_sched": {
        f"int ({_QUEUE}, struct elevator_type *)": "",
        f"int ({_QUEUE}, struct elevator_queue *)": "INIT_SCHED_QUEUE",
    },
    "exit_sched": {"void (struct elevator_queue *)": ""},
    "init_hctx": {f"int ({_HCTX}, unsigned int)": ""},
    "exit_hctx": {f"void ({_HCTX}, unsigned int)": ""},
    "depth_updated": {
        f"void ({_HCTX})": "",
        f"void ({_QUEUE})": "DEPTH_UPDATED_QUEUE",
    },
    "bio_merge": {f"bool ({_QUEUE}, struct bio *, unsigned int)": ""},
    "limit_depth": {"void (blk_opf_t, struct blk_mq_alloc_data *)": ""},
    "prepare_request": {"void (struct request *)": ""},
    "finish_request": {"void (struct request *)": ""},
    "insert_requests": {
        f"void ({_HCTX}, struct list_head *, bool)": "",
        f"void ({_HCTX}, struct list_head *, blk_insert_t)": "INSERT_FLAGS",
    },
    "dispatch_request": {f"struct request * ({_HCTX})": ""},
    "has_work": {f"bool ({_HCTX})": ""},
    "completed_request": {"void (struct request *, u64)": ""},
    "requeue_request": {"void (struct request *)": ""},
}

# Hooks that only some kernels have. Where one exists, it must have this form.
OPTIONAL_HOOKS: dict[str, Forms] = {
    "alloc_sched_data": {f"void * ({_QUEUE})": "ALLOC_SCHED_DATA"},
    "free_sched_data": {"void (void *)": "ALLOC_SCHED_DATA"},
}

# Function typedefs of struct blkcg_policy.
CALLBACKS: dict[str, Forms] = {
    "blkcg_pol_alloc_cpd_fn": {"struct blkcg_policy_data * (gfp_t)": ""},
    "blkcg_pol_free_cpd_fn": {"void (struct blkcg_policy_data *)": ""},
    "blkcg_pol_alloc_pd_fn": {
        f"struct blkg_policy_data * (gfp_t, {_QUEUE}, struct blkcg *)": "",
        "struct blkg_policy_data * (struct gendisk *, struct blkcg *, gfp_t)": "PD_ALLOC_DISK",
    },
    "blkcg_pol_free_pd_fn": {"void (struct blkg_policy_data *)": ""},
    "blkcg_pol_stat_pd_fn": {"void (struct blkg_policy_data *, struct seq_file *)": ""},
}


@dataclass(frozen=True)
class Function:
    """An exported function that no public header declares."""

    name: str
    forms: Forms
    # The function is needed only if these features are 1, or 0 with a leading "!".
    when: tuple[str, ...] = field(default=())


FUNCTIONS: tuple[Function, ...] = (
    Function("elv_register", {"int (struct elevator_type *)": ""}),
    Function("elv_unregister", {"void (struct elevator_type *)": ""}),
    Function(
        "elevator_alloc",
        {f"struct elevator_queue * ({_QUEUE}, struct elevator_type *)": ""},
        ("!INIT_SCHED_QUEUE",),
    ),
    Function(
        "blk_bio_list_merge",
        {f"bool ({_QUEUE}, struct list_head *, struct bio *, unsigned int)": ""},
    ),
    Function(
        "wbt_disable_default",
        {f"void ({_QUEUE})": "", "void (struct gendisk *)": "WBT_DISK"},
        ("WBT",),
    ),
    Function(
        "wbt_enable_default",
        {f"void ({_QUEUE})": "", "void (struct gendisk *)": "WBT_DISK"},
        ("WBT",),
    ),
    Function("blkcg_policy_register", {f"int ({_POLICY})": ""}),
    Function("blkcg_policy_unregister", {f"void ({_POLICY})": ""}),
    Function(
        "blkcg_activate_policy",
        {
            f"int ({_QUEUE}, {_POLICY})": "",
            f"int (struct gendisk *, {_POLICY})": "POLICY_DISK",
        },
    ),
    Function(
        "blkcg_deactivate_policy",
        {
            f"void ({_QUEUE}, {_POLICY})": "",
            f"void (struct gendisk *, {_POLICY})": "POLICY_DISK",
        },
    ),
)

# Functions of public headers that the module calls. A kernel may stop exporting one.
PUBLIC_EXPORTS: tuple[str, ...] = (
    "blk_mq_run_hw_queue",
    "sbitmap_queue_init_node",
    "sbitmap_queue_get_shallow",
    "sbitmap_queue_min_shallow_depth",
    "kernfs_path_from_node",
    "radix_tree_lookup",
    "css_next_descendant_pre",
)


@dataclass(frozen=True)
class Variable:
    """An exported variable that no public header declares. BTF does not describe variables."""

    name: str
    declaration: str


VARIABLES: tuple[Variable, ...] = (Variable("blkcg_root", "struct blkcg blkcg_root"),)

# Features that the presence of a member, a function or an enumerator proves.
MEMBER_FEATURES: dict[str, str] = {
    "ELEVATOR_FEATURES": "elevator_type.elevator_features",
    "ELEVATOR_QUEUE_FLAGS": "elevator_queue.flags",
    "ELEVATOR_LOCK": "request_queue.elevator_lock",
    "PLUG_TIME": "blk_plug.cur_ktime",
}
FUNCTION_FEATURES: dict[str, str] = {
    "HRTIMER_SETUP": "hrtimer_setup",
    "WBT": "wbt_disable_default",
}
ENUMERATOR_FEATURES: dict[str, str] = {
    "QUEUE_FLAG_DISABLE_WBT_DEF": "QUEUE_FLAG_DISABLE_WBT_DEF",
    "WQ_PERCPU": "WQ_PERCPU",
}

# Needs of mqfair-ssd.ko alone. They are checked when that module is built too; otherwise a
# kernel may lack all of them.
SSD_OPTION = "CONFIG_CONFIGFS_FS"

# Functions of public headers that differ between kernels.
SSD_PUBLIC_FUNCTIONS: dict[str, Forms] = {
    "__blk_mq_alloc_disk": {
        "struct gendisk * (struct blk_mq_tag_set *, void *, struct lock_class_key *)": "",
        "struct gendisk * (struct blk_mq_tag_set *, struct queue_limits *, void *, "
        "struct lock_class_key *)": "ALLOC_DISK_LIMITS",
    },
}

SSD_PUBLIC_EXPORTS: tuple[str, ...] = (
    "io_cgrp_subsys",
    "for_each_kernel_tracepoint",
    "tracepoint_probe_register",
    "tracepoint_probe_unregister",
)

SSD_MEMBER_FEATURES: dict[str, str] = {
    "LIMITS_FEATURES": "queue_limits.features",
}
SSD_ENUMERATOR_FEATURES: dict[str, str] = {
    "BLK_MQ_F_SHOULD_MERGE": "BLK_MQ_F_SHOULD_MERGE",
}
