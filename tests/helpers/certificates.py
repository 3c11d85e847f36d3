"""Certificates of workers, as files."""

from telegrad.rpc.certificates import Authority
from telegrad.rpc.security.tls import TlsFiles, load


def tls_files(folder, authority, worker, ca=None, **options):
    """Write a new certificate of a worker, its key and its authority into a new folder, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    issued = authority.issue(worker)
    parts = {"certificate": issued.certificate, "key": issued.key, "ca": ca or authority.certificate}
    for name, part in parts.items():
        (folder / name).touch(0o600)
        (folder / name).write_bytes(part)
    return TlsFiles(**{name: folder / name for name in parts}, rank0_name=authority.job, **options)


def worker_tls(folder, authority, worker):
    """Return the TLS of a worker with a new certificate."""
    return load(tls_files(folder, authority, worker))


def authority(job="job.test", **options):
    return Authority(job, **options)
