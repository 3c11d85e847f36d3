"""Findings of ``telegrad migrate`` that depend on more than one name: branches without a GPU, and how workers meet."""

import pytest
from telegrad.compat.migrate import migrate

HARMLESS = [
    'device = "cuda" if torch.cuda.is_available() else "cpu"',
    'device = "cpu" if not torch.cuda.is_available() else "cuda:1"',
    'device = torch.device("cuda:0" if flag and torch.cuda.is_available() else "cpu")',
    'ready = torch.cuda.is_available()\ndevice = "cuda" if ready else "cpu"',
    "args.cuda = not args.no_cuda and torch.cuda.is_available()\nif args.cuda:\n    model.cuda()",
    "if torch.cuda.device_count() > 1:\n    torch.cuda.nothing(model)",
    "if torch.cuda.device_count() >= 1:\n    model.cuda()",
    'if torch.cuda.is_available():\n    x.to("cuda")\nelse:\n    x.to("cpu")',
    'if device.type == "cuda":\n    pass',
]


@pytest.mark.parametrize("lines", HARMLESS)
def test_what_never_runs_without_a_gpu_is_harmless(lines):
    assert migrate(f"import torch\n{lines}\n").findings == []


@pytest.mark.parametrize(
    "lines",
    [
        'device = "cpu" if torch.cuda.is_available() else "cuda"',
        'device = "cuda" if wanted else "cpu"',
        'device = "cuda" if wanted or torch.cuda.is_available() else "cpu"',
        'ready = torch.cuda.is_available()\nready = True\ndevice = "cuda" if ready else "cpu"',
        'def f(ready):\n    return "cuda" if ready else "cpu"\nready = torch.cuda.is_available()',
        "if torch.cuda.device_count() >= 0:\n    model.cuda()",
    ],
)
def test_what_may_run_without_a_gpu_is_not(lines):
    (finding,) = migrate(f"import torch\n{lines}\n").findings
    assert "there is no GPU" in finding.reason


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('options.set_device_map("b", {0: 1})', "device maps"),
        ('Options(device_maps={"b": {0: 1}})', "device maps"),
        ('init_process_group("nccl")', "no NCCL"),
        ('os.environ["MASTER_ADDR"] = "10.0.0.1"', "TELEGRAD_SECRET"),
        ('os.environ["MASTER_ADDR"] = args.address', "TELEGRAD_SECRET"),
        ('os.environ.setdefault("MASTER_ADDR", "node0")', "TELEGRAD_SECRET"),
        ('options = Options(init_method="tcp://node0:29500")', "TELEGRAD_SECRET"),
        ('options = Options(init_method=f"tcp://{host}:29500")', "TELEGRAD_SECRET"),
    ],
)
def test_what_the_script_does_not_say_is_named(line, words):
    (finding,) = migrate(f"{line}\n").findings
    assert finding.line == 1 and words in finding.reason


@pytest.mark.parametrize(
    "line",
    [
        'os.environ["MASTER_ADDR"] = "localhost"',
        'os.environ.setdefault("MASTER_ADDR", "127.0.0.1")',
        'os.environ["MASTER_PORT"] = port',
        'options = Options(init_method=f"tcp://localhost:{port}")',
        'init_process_group("gloo")',
        'init_process_group("gloo")\ninit_rpc("a")',
        'init_rpc("a", 0, 2)',
    ],
)
def test_a_job_of_one_host_needs_nothing(line):
    assert migrate(f"{line}\n").findings == []
