# SPDX-License-Identifier: GPL-2.0
"""The keys of fio's job files, by their effect on a bench.

A bench measures requests of all sections at the same time, for a time that it knows. It has one log
line for each request, and has chosen the drive. A key that changes one of these is *replaced*,
with a note, or *refused*, if no replacement means the same. A key of verification, too: the reads
of a check are no load. Keys that are *absorbed* are carried out by the bench itself. All others
reach fio unchanged. Those *without effect* change no request, so the simulator skips them, too.

A key with a value that means its absence, such as `verify=0`, is as good as absent.
"""

from collections.abc import Mapping

_DRIVE = "the device is that of --device"
_LOGGED = "every latency is logged"
_CLOCK = "latencies are those of fio's own clock"
_TIMED = "a job runs for its runtime, and is then ended"
_TOGETHER = "all jobs run to the end of the time"
_ERRORS = "an error ends the bench"
_DATA = "the bench measures, and verifies no data"
_STEADY = "the time that is counted is fixed"
_PROCESS = "each job is a process of its cgroup"
_ROOT = "the bench moves each job into its cgroup, as root"
_PROGRAM = "no other program runs beside the bench"
_PRIVATE = "the results are those of each job"


def words_of(text: str) -> list[str]:
    return text.split()


def _each(words: str, reason: str) -> dict[str, str]:
    return dict.fromkeys(words_of(words), reason)


# Keys that the bench replaces by its own, each with the reason.
REPLACED: Mapping[str, str] = {
    **_each(
        "filename directory filename_format unique_filename filetype opendir lockfile nrfiles"
        " nr_files openfiles file_service_type filesize file_append allow_file_create"
        " allow_mounted_write create_serialize create_fsync create_on_open pre_read unlink"
        " unlink_each_loop",
        _DRIVE,
    ),
    **_each(
        "gtod_reduce disable_lat stats write_lat_log write_bw_log write_iops_log write_hist_log"
        " log_avg_msec log_entries log_unix_epoch log_alternate_epoch log_alternate_epoch_clock_id"
        " log_compression log_compression_cpus log_store_compressed log_window_value log_max_value"
        " log_hist_msec log_hist_coarseness write_iolog",
        _LOGGED,
    ),
    "per_job_logs": "every job has its own log",
    **_each("gtod_cpu clocksource", _CLOCK),
    **_each(
        "number_ios io_size io_limit loops fill_device fill_fs create_only end_fsync end_syncfs"
        " fsync_on_close rate_min ratemin rate_iops_min max_latency",
        _TIMED,
    ),
    "ramp_size": "the warm-up is ramp_time",
    **_each("exitall exit_what exitall_on_error", _TOGETHER),
    **_each("continue_on_error ignore_error", _ERRORS),
    **_each(
        "verify do_verify verify_only verify_offset verify_interval verify_header_interval"
        " verify_pattern verify_pattern_interval verify_policy verify_fatal verify_dump"
        " verify_async verify_async_cpus verify_backlog verify_backlog_batch verify_state_save"
        " verify_state_load verify_write_sequence verify_header_seed experimental_verify"
        " trim_percentage trim_verify_zero trim_backlog trim_backlog_batch",
        _DATA,
    ),
    **_each(
        "steadystate ss steadystate_duration ss_dur steadystate_ramp_time ss_ramp"
        " steadystate_check_interval ss_interval",
        _STEADY,
    ),
    "thread": _PROCESS,
    **_each("uid gid", _ROOT),
    "exec_postrun": _PROGRAM,
    "unified_rw_reporting": _PRIVATE,
}
# Keys that the bench carries out itself, or that concern fio's code for cgroup v1.
ABSORBED = frozenset(
    {
        "cgroup",
        "cgroup_weight",
        "cgroup_nodelete",
        "runtime",
        "timeout",
        "time_based",
        "ramp_time",
        "group_reporting",
    }
)
_ALONE = "all sections run at the same time: remove it, or choose one section by --section"
_DEPTH = "fio would change the depth while the bench measures: remove it, and set iodepth"
# Keys that are not carried out, each with the hint.
REFUSED: Mapping[str, str] = {
    **_each("stonewall wait_for_previous wait_for", _ALONE),
    "exec_prerun": "the bench itself uses it; remove it",
    "include": "write the options into this file",
    "ioscheduler": "the bench sets the scheduler: remove it, and name it in --schedulers",
    "profile": "write the options of the profile into this file",
    **_each(
        "merge_blktrace_file merge_blktrace_scalars merge_blktrace_iters",
        "merge the traces beforehand, and name the result in read_iolog",
    ),
    **_each("latency_target latency_window latency_percentile latency_run", _DEPTH),
}
# Keys of REFUSED that let a section wait for others: the first one that runs may have them.
BARRIERS = ("stonewall", "wait_for_previous", "wait_for")
# Keys of REFUSED that mean nothing without another key.
NEEDS: Mapping[str, str] = {
    "latency_window": "latency_target",
    "latency_percentile": "latency_target",
    "latency_run": "latency_target",
}
# Engines that send no request to the scheduler of a block device.
_PASSTHROUGH = "its requests pass every scheduler by: use io_uring or libaio"
_ELSEWHERE = "it sends no request to a block device: use io_uring, libaio or psync"
# The engines with one request outstanding, and that of a job that names none.
ENGINES_OF_ONE = ("psync", "sync", "vsync", "pvsync", "pvsync2")
ENGINE_DEFAULT = "psync"
ENGINES_REFUSED: Mapping[str, str] = {
    **_each("sg io_uring_cmd xnvme libblkio libzbc rbd rados", _PASSTHROUGH),
    **_each(
        "null cpp_null net netsplice rdma cpuio exec filecreate filestat filedelete dircreate"
        " dirstat dirdelete falloc ftruncate e4defrag mtd http nbd nfs gfapi gfapi_async libhdfs"
        " libiscsi libpmem pmemblk dev-dax dfs ime_psync ime_psyncv ime_aio libcufile libhipfile"
        " page_fault",
        _ELSEWHERE,
    ),
}
# Keys that change no request.
WITHOUT_EFFECT = frozenset(
    words_of(
        "allrandrepeat block_error_percentiles buffer_compress_chunk buffer_compress_percentage"
        " buffer_pattern bwavgtime clat_percentiles comm dedupe_global dedupe_mode"
        " dedupe_percentage dedupe_working_set_percentage description disable_bw"
        " disable_bw_measurement disable_clat disable_slat disk_util error_dump fadvise_hint"
        " fallocate group_reporting hugepage-size invalidate iomem iomem_align iopsavgtime"
        " job_start_clock_id kb_base lat_percentiles lockmem log_issue_time log_offset log_prio mem"
        " mem_align name new_group norandommap overwrite percentile_list randrepeat randseed"
        " random_generator rate_cycle ratecycle refill_buffers scramble_buffers"
        " significant_figures slat_percentiles softrandommap threads unit_base userspace_reap"
        " zero_buffers"
    )
)
# The values of a key that mean its absence. Those of every other key of REPLACED and REFUSED: 0.
_OFF: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("loops", "nrfiles", "nr_files", "openfiles", "file_service_type"), ("0", "1")),
    **dict.fromkeys(("stats", "create_serialize", "allow_file_create"), ("1",)),
    **dict.fromkeys(("verify", "unified_rw_reporting", "lockfile"), ("0", "none")),
    **dict.fromkeys(("continue_on_error", "exit_what"), ("0", "none")),
    **dict.fromkeys(("ioscheduler", "include", "exec_prerun", "profile", "filename"), ()),
}
_ABSENT = ("0",)


def is_off(key: str, value: str | None) -> bool:
    """Whether @key with this @value is as good as absent."""
    return value in _OFF.get(key, _ABSENT)
