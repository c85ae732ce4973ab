// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Who sends discards, and to which disk or partition.
 *
 * A discard is issued to the drive by whatever task happens to dispatch it, mostly a kernel worker; only where the
 * discard is made is the current task its cause. So the hooks are on the functions that make discard bios. Nothing else
 * passes through those, so other I/O costs nothing. User space chooses the programs by the kernel's own types.
 */
#include "block/discard_cells.bpf.h"

/* REQ_OP_DISCARD, from the kernel's enum req_op. */
const volatile __u32 cfg_discard_op = 0;

static __always_inline int queued(struct bio *bio)
{
	struct gendisk *disk;

	if ((bio->bi_opf & OPERATION_MASK) != cfg_discard_op)
		return 0;
	if (!bpf_core_field_exists(((struct bio___until_5_12 *)bio)->bi_disk)) {
		count_discard(bio->bi_bdev->bd_disk, bio->bi_bdev->bd_dev, bio->bi_iter.bi_size);
		return 0;
	}
	/* The bio's partition is lost before it gets here (blk_partition_remap). */
	disk = ((struct bio___until_5_12 *)bio)->bi_disk;
	if (disk)
		count_discard(disk, disk_number(disk), bio->bi_iter.bi_size);
	return 0;
}

/*
 * Since Linux 6.10, file systems, md and the discard ioctl make their bios in different places, partly inlined into one
 * another; each of these bios passes through here once. So do a few bios of other operations, and nothing else.
 */
SEC("fentry/bio_chain_and_submit")
int BPF_PROG(on_discard_bio, struct bio *previous, struct bio *bio)
{
	return queued(bio);
}

/* Before 6.10: all of them call this function with the whole range, which it refuses or accepts. */
SEC("fexit/__blkdev_issue_discard")
int BPF_PROG(on_discard, struct block_device *bdev, __u64 sector, __u64 sectors, unsigned int gfp, struct bio **bios,
	     int error)
{
	if (!error)
		count_discard(bdev->bd_disk, bdev->bd_dev, sectors << SECTOR_SHIFT);
	return 0;
}

/* until Linux 5.19 (44abff2c0b97 "block: decouple REQ_OP_SECURE_ERASE from REQ_OP_DISCARD") */
SEC("fexit/__blkdev_issue_discard")
int BPF_PROG(on_discard_5_18, struct block_device *bdev, __u64 sector, __u64 sectors, unsigned int gfp, int flags,
	     struct bio **bios, int error)
{
	if (!error && !(flags & BLKDEV_DISCARD_SECURE))
		count_discard(bdev->bd_disk, bdev->bd_dev, sectors << SECTOR_SHIFT);
	return 0;
}

/* The last resort, where functions cannot be hooked: every bio of the host passes through here. */
SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_bio_queue, struct bio *bio)
{
	return queued(bio);
}

/* until Linux 5.11 (e8a676d61c07 "block: simplify and extend the block_bio_merge tracepoint class") */
SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_bio_5_10, struct request_queue *queue, struct bio *bio)
{
	return queued(bio);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
