"""The faults of disks; each function returns how to end the fault, None if it is impossible now."""

import asyncio
import random
from collections import Counter
from contextlib import suppress

from barnabas_broker.log.index import offset_index
from barnabas_broker.log.manager.log_folders import parse_folder_name
from barnabas_broker.log.manager.offset_checkpoints import CLEAN_OFFSETS, RECOVERY_POINTS
from barnabas_broker.log.segment.segment_files import LOG_SUFFIX
from barnabas_common.record.batch import BatchHeader, parse_header
from barnabas_common.topic_name import INTERNAL_TOPICS
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.campaign.faults.budget import (
    has_lost_directory,
    is_sound,
    is_well,
    known_high_watermarks,
)
from barnabas_simulator.campaign.faults.faults import Fault, FaultKind, Undo, nothing
from barnabas_simulator.campaign.state import partition_states
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.disk import MemoryDisk
from barnabas_simulator.invariants.durability_rules import CHECKPOINTS

Place = tuple[str, int, BatchHeader]
"""The path of a segment, the position of a batch in it, and the header there."""

FULL_DISK_BYTES = 200
LOOK_SECONDS = 0.001
TOP_BIT = 7
LENGTH, EPOCH, MAGIC, AFTER_MAGIC = 8, 12, 16, 17
"""Positions in a batch. No checksum covers what comes before, nor the leader epoch."""


class DiskFaults:
    """`held`: how many faults of disks each broker has now."""

    def __init__(self, cluster: SimulatedCluster, chance: random.Random) -> None:
        self._cluster = cluster
        self._chance = chance
        self._held: Counter[int] = Counter()

    def strike(self, fault: Fault, victim: int) -> Undo | None:
        """Start a fault that destroys nothing."""
        disk = self._cluster.disks[victim]
        match fault.kind:
            case FaultKind.FAIL_WRITE:
                disk.fail_next_write = True
            case FaultKind.FAIL_FLUSH:
                if self.is_damaged(victim):  # what is written again would be damaged for good
                    return None
                disk.fail_next_flush = True
            case FaultKind.DISK_FULL:
                disk.free_bytes = FULL_DISK_BYTES
            case FaultKind.NO_DESCRIPTORS:
                disk.no_descriptors = True
            case FaultKind.FAIL_DIRECTORY:
                if len(disk.roots) < 2 or disk.failing:
                    return None
                disk.failing.add(self._chance.choice(disk.roots))
            case FaultKind.ROT:
                return self._rot(victim)
            case FaultKind.ROT_INDEX:
                return self._rot_index(victim)
            case _:
                raise ValueError(f"not a fault of a disk: {fault}")
        self._held[victim] += 1

        def undo() -> None:
            self._held[victim] -= 1
            _end(disk, fault.kind)

        return undo

    def to_restart(self) -> list[int]:
        """The brokers that run without a directory which has recovered."""
        return [
            broker_id
            for broker_id in self._cluster.running_brokers
            if not self._held[broker_id]
            and has_lost_directory(self._cluster, broker_id)
            and not self._cluster.is_paused(broker_id)
        ]

    def to_flip_back(self) -> list[int]:
        """The brokers with a damaged log, of which perhaps no other member of the ISR has a sound
        one. They may find the damage at their next start; then an operator must act."""
        return [
            broker_id
            for broker_id in self._cluster.broker_ids
            if self.is_damaged(broker_id)
            and any(
                broker_id in found.state.isr and not self._has_sound_member(partition, broker_id)
                for partition, found in partition_states(self._cluster).items()
            )
        ]

    def is_damaged(self, victim: int) -> bool:
        """Whether a bit of a log is wrong, which another fault might make lasting."""
        return self._cluster.disks[victim].is_rotten(LOG_SUFFIX)

    async def failed_flush(self, victim: int, seconds: float) -> bool:
        """Let the next flush of a log fail, and wait for it; whether it came."""
        disk = self._cluster.disks[victim]
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        disk.fail_flush_of = LOG_SUFFIX
        while disk.fail_flush_of and loop.time() < end:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)
        came = not disk.fail_flush_of
        disk.fail_flush_of = ""
        return came and disk.has_unwritten

    def spoil_checkpoint(self, victim: int, bit: bool) -> bool:
        """Damage a checkpoint of a broker that does not run: one bit, or all of it."""
        disk = self._cluster.disks[victim]
        found = [
            f"{root}/{name}"
            for root in disk.roots
            for name in self._checkpoints(disk, root)
            if not bit or disk.look_into(root)[name].data
        ]
        if not found:
            return False
        path = self._chance.choice(found)
        if bit:  # the text is not ASCII then; another number would be believed
            root, _, name = path.rpartition("/")
            size = len(disk.look_into(root)[name].data)
            disk.flip(path, self._chance.randrange(size), TOP_BIT)
        else:
            disk.spoil(path)
        return True

    def has_checkpoints(self, victim: int) -> bool:
        disk = self._cluster.disks[victim]
        return any(self._checkpoints(disk, root) for root in disk.roots)

    @staticmethod
    def _checkpoints(disk: MemoryDisk, root: str) -> list[str]:
        names = [name for name in disk.look_into(root) if name in CHECKPOINTS]
        if CLEAN_OFFSETS in names:
            # Without recovery points the gaps of a compacted log look like lost records, and the
            # replica is refused. That is a lost log, which the budget of this fault does not cover.
            names = [name for name in names if name != RECOVERY_POINTS]
        return names

    # ---- bit rot

    def _rot_index(self, victim: int) -> Undo | None:
        """Change a bit of an offset index that is in use."""
        disk = self._cluster.disks[victim]
        found = [
            (f"{root}/{folder}/{name}", len(file.data))
            for root in disk.roots
            for folder in disk.directories(root)
            for name, file in disk.look_into(f"{root}/{folder}").items()
            if name.endswith(offset_index.SUFFIX) and file.data
        ]
        if not found:
            return None
        path, size = self._chance.choice(found)
        disk.flip(path, self._chance.randrange(size), self._chance.randrange(8))
        return nothing

    def _rot(self, victim: int) -> Undo | None:
        """Change a bit of a batch below the high watermark that the checkpoint names.

        What is above it a start would cut as the torn end of a log. Another member of the ISR must
        be sound.
        """
        disk = self._cluster.disks[victim]
        if not is_sound(self._cluster, victim) or not self._cluster.is_serving(victim):
            return None
        batches = [
            (partition, *place)
            for root in disk.roots
            for partition, known in known_high_watermarks(disk, root).items()
            if partition.topic not in INTERNAL_TOPICS and self._has_sound_member(partition, victim)
            for place in _batches(disk, f"{root}/{partition}", known)
        ]
        if not batches:
            return None
        partition, path, position, header = self._chance.choice(batches)
        ranges = [
            range(LENGTH, EPOCH),
            range(MAGIC, AFTER_MAGIC),
            range(AFTER_MAGIC, header.size),
            range(AFTER_MAGIC, header.size),
        ]
        if any(at == path and later > position for _, at, later, _ in batches):
            ranges.append(range(EPOCH, MAGIC))  # in the last batch it may not be recognized
        where = self._chance.choice(ranges)
        disk.flip(path, position + self._chance.choice(where), self._chance.randrange(8))
        offsets = range(header.base_offset, header.last_offset + 1)
        self._cluster.damage.append((partition, offsets))
        return nothing

    def _has_sound_member(self, partition: TopicPartition, victim: int) -> bool:
        """Whether both are in the ISR: the victim, and another one that is well."""
        found = partition_states(self._cluster).get(partition)
        return (
            found is not None
            and victim in found.state.isr
            and any(other != victim and is_well(self._cluster, other) for other in found.state.isr)
        )


def _end(disk: MemoryDisk, kind: FaultKind) -> None:
    match kind:
        case FaultKind.NO_DESCRIPTORS:
            disk.no_descriptors = False
        case FaultKind.FAIL_DIRECTORY:
            disk.failing.clear()
        case _:
            disk.fail_next_write = disk.fail_next_flush = False
            disk.free_bytes = None


def _batches(disk: MemoryDisk, folder: str, high_watermark: int) -> list[Place]:
    """The batches of a log below a high watermark."""
    found: list[Place] = []
    if parse_folder_name(folder.rpartition("/")[2]) is None:
        return []
    for name, file in disk.look_into(folder).items():
        position, data = 0, file.data
        while name.endswith(LOG_SUFFIX) and position < len(data):
            with suppress(ValueError):
                header = parse_header(data, position)
                if header.last_offset >= high_watermark:
                    break
                found.append((f"{folder}/{name}", position, header))
                position += header.size
                continue
            break
    return found
