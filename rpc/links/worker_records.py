"""Records of the workers of a job, kept as the bytes that arrived: a record is decoded each time it is asked for.

Each of n workers has the records of all n, but calls few of them. So it does not make an object for every record.
"""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate, chain
from operator import sub

from ...proto.rpc_pb2 import WorkerRecord, WorkerTable


class WorkerRecords:
    """Table of records in order of the workers' numbers. It does not change.

    Attributes:
        ranked: every worker's place in the table is also its number and its rank.
    """

    __slots__ = ("_by_name", "_ends", "_records", "ranked")

    def __init__(self, table: WorkerTable) -> None:
        self._records: bytes = table.records
        self._ends = array("Q", accumulate(table.lengths))
        self._by_name = array("I", table.by_name)
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
                lengths=map(len, encoded),
                by_name=places,
                ranked=all(place == record.number == record.rank for place, record in enumerate(ordered)),
            )
        )

    def encode(self) -> bytes:
        """Return the table as bytes, compressed to about a quarter."""
        lengths = map(sub, self._ends, chain((0,), self._ends))
        table = WorkerTable(records=self._records, lengths=lengths, by_name=self._by_name, ranked=self.ranked)
        return zlib.compress(table.SerializeToString())

    @classmethod
    def decode(cls, data: bytes) -> WorkerRecords:
        """Return the table of which ``data`` is the encoding (``encode``)."""
        return cls(WorkerTable.FromString(zlib.decompress(data)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WorkerRecords) and self._records == other._records

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, place: int) -> WorkerRecord:
        """Return the record at a place.

        Raises:
            IndexError: there is no such place.
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
        place = self._by_name[at] if at < len(self) else -1
        return place if place >= 0 and self[place].name == name else -1
