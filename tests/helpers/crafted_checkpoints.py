"""Files in the forms of ``torch.save``, put together from opcodes of a pickle."""

import io
import pickle
import zipfile


def crafted(described, **records):
    """Return an archive with a pickle, and with storages by key: ``_0=b"..."``."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x/data.pkl", described)
        for name, content in records.items():
            archive.writestr(f"x/data/{name[1:]}", content)
    file.seek(0)
    return file


# The first objects of the older form.
SEQUENCE = b"".join(pickle.dumps(start, 2) for start in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))

STORAGE = b"(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\x000X\3\0\0\0cpuK\2tQ"
TENSOR = b"\x80\2ctorch._utils\n_rebuild_tensor\n(" + STORAGE + b"%btR."
