"""Records of the workers of a job, in the bytes in which they came: a record is decoded when somebody asks for it.

Each of n workers has the records of all n, and deals with few of them. So none makes an object for each other one.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator

import numpy as np

from ..proto.rpc_pb2 import WorkerRecord, WorkerTable


class WorkerRecords:
    """Table of records in order of the workers' numbers; it does not change.

    Attributes:
        ranked: a worker's place in the table is its number and its rank.
    """

    __slots__ = ("_by_name", "_ends", "_records", "ranked")

    def __init__(self, table: WorkerTable) -> None:
        self._records: bytes = table.records
        self._ends = np.frombuffer(table.lengths, "<u4").cumsum()
        self._by_name = np.frombuffer(table.by_name, "<u4")
        self.ranked: bool = table.ranked

    @classmethod
    def of(cls, records: Iterable[WorkerRecord]) -> WorkerRecords:
        """Return the table of these records."""
        ordered = sorted(records, key=lambda record: record.number)
        encoded = [record.SerializeToString() for record in ordered]
        places = sorted(range(len(ordered)), key=lambda place: ordered[place].name)
        return cls(
            WorkerTable(
                records=b"".join(encoded),
                lengths=np.array([len(each) for each in encoded], "<u4").tobytes(),
                by_name=np.array(places, "<u4").tobytes(),
                ranked=all(place == record.number == record.rank for place, record in enumerate(ordered)),
            )
        )

    def encode(self) -> bytes:
        """Return the table as bytes, compressed to about a quarter."""
        lengths, by_name = np.diff(self._ends, prepend=0).astype("<u4").tobytes(), self._by_name.tobytes()
        table = WorkerTable(records=self._records, lengths=lengths, by_name=by_name, ranked=self.ranked)
        return zlib.compress(table.SerializeToString())

    @classmethod
    def decode(cls, data: bytes) -> WorkerRecords:
        """Return the table that ``encode`` made into ``data``."""
        return cls(WorkerTable.FromString(zlib.decompress(data)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WorkerRecords) and self._records == other._records

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, place: int) -> WorkerRecord:
        """Return the record at a place.

        Raises:
            IndexError: there is none.
        """
        if not 0 <= place < len(self):
            raise IndexError(f"there is no record at place {place} of {len(self)}")
        begin = self._ends[place - 1] if place else 0
        return WorkerRecord.FromString(self._records[begin : self._ends[place]])

    def __iter__(self) -> Iterator[WorkerRecord]:
        return map(self.__getitem__, range(len(self)))

    def place_of(self, name: str) -> int:
        """Return the place of the worker of that name, -1 if there is none; decodes log n records."""
        at = bisect_left(self._by_name, name, key=lambda place: self[place].name)
        place = int(self._by_name[at]) if at < len(self) else -1
        return place if place >= 0 and self[place].name == name else -1
