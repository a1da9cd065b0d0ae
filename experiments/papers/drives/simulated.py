# SPDX-License-Identifier: GPL-2.0
"""The drives of the papers as values of --device of `mqfair sim`, and the name of BFQ there."""

# BFQ's engine (sim/bwf2q.c).
BFQ = "bwf2q"

# Each hardware queue of an NVMe drive takes 1023 commands, so a thread of depth 128 waits for none.
_NVME = "hw_depth=1023"
_READ = f"fill=100,fill_pattern=random,{_NVME}"
# It alternates between the queues, and has 64 commands inside (Hedayati et al., section 4).
P3700 = f"ssd:model=p3700,size_mb=1024,{_READ},fetch=64"
# The readers of ifq's paper had a SATA drive of the same maker.
PRO_980 = f"ssd:model=980pro,size_mb=1024,{_READ}"
FABRIC = f"ssd:model=fabric,size_mb=256,{_NVME}"
# The paper's minute of writes to files of 10 GB leaves most of a drive of 2 TB empty, so nothing is
# collected. Here jobs use a quarter of the drive, and the rest is empty.
P4500 = f"ssd:model=p4500,size_mb=4096,fill=25,fill_pattern=random,{_NVME}"
# Emulated and small in the paper, and 85 % full with data of both tenants.
FOUR_DIES = (
    "ssd:model=four-dies,size_mb=512,ftl=host,fill_pattern=sequential,"
    "fill_parts=reader:40:0+writer:45:3"
)
# 64 slots of 16 ms: 4000 requests a second.
SLOTS_64 = (
    "null:irqmode=2,completion_nsec=16000000,submit_queues=2,hw_queue_depth=64,"
    "shared_tag_bitmap=1,gb=4,poll_queues=0"
)
# A SATA drive takes 32 commands in one queue. This one does 100,000 requests a second.
SATA = (
    "null:irqmode=2,completion_nsec=320000,submit_queues=1,hw_queue_depth=32,"
    "shared_tag_bitmap=1,gb=4,poll_queues=0"
)
