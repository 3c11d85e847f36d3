"""Programs for GPUs: ``torch.cuda`` answers that there is none; what would use one raises, or has no effect, as in PyTorch."""

import pytest
import telegrad as tg
from telegrad.compat import torch


def test_there_is_no_gpu():
    assert torch.cuda is tg.cuda and tg.cuda.is_available() is False
    assert not torch.cuda.is_initialized() and not torch.cuda.is_bf16_supported()
    assert torch.cuda.device_count() == torch.cuda.memory_allocated() == torch.cuda.max_memory_allocated(0) == 0
    assert torch.cuda.get_rng_state_all() == []
    torch.cuda.set_device(-1)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("set_device", (0,)),
        ("set_device", ("cuda:0",)),
        ("current_device", ()),
        ("get_device_name", (0,)),
        ("init", ()),
    ],
)
def test_what_uses_a_gpu_raises(name, args):
    with pytest.raises(AssertionError, match=rf"leave torch\.cuda\.{name} out"):
        getattr(torch.cuda, name)(*args)
    assert not hasattr(torch.cuda, "nothing")


def test_mixed_precision_for_gpus_has_no_effect():
    with pytest.warns(UserWarning, match="no device 'cuda'"):
        scaler = torch.cuda.amp.GradScaler(growth_interval=10)
    with pytest.warns(UserWarning, match="no device 'cuda'"):
        block = torch.cuda.amp.autocast(dtype=torch.float16)
    assert isinstance(scaler, torch.amp.GradScaler) and not scaler.is_enabled()
    assert isinstance(block, torch.autocast)
    with block:
        assert (tg.ones(2, 2) @ tg.ones(2, 2)).dtype == tg.float32
    loss = tg.ones(1, requires_grad=True).sum()
    assert scaler.scale(loss) is loss
    torch.cuda.amp.GradScaler(enabled=False)
    torch.cuda.amp.autocast(enabled=False)


def test_data_parallel_is_the_module_on_one_device():
    module = torch.nn.Linear(3, 2)
    parallel = torch.nn.DataParallel(module, device_ids=[0, 1], output_device=0)
    x = tg.randn(4, 3)
    assert parallel(x).tolist() == module(x).tolist() and parallel.module is module and parallel.device_ids == []
    assert list(parallel.state_dict()) == ["module.weight", "module.bias"]
    assert torch.nn.parallel.DataParallel is torch.nn.DataParallel
    parallel.load_state_dict(torch.nn.DataParallel(torch.nn.Linear(3, 2)).state_dict())


def test_torchscript_is_python():
    def double(x):
        return 2 * x

    @torch.jit.interface
    class Doubling:
        def double(self, x: tg.Tensor) -> tg.Tensor:
            pass

    class Layer(torch.jit.ScriptModule):
        @torch.jit.script_method
        def forward(self, x):
            return double(x)

    assert isinstance(Doubling(), Doubling) and Layer()(3) == 6 and isinstance(Layer(), tg.nn.Module)
    assert torch.jit.trace(double, (tg.ones(1),)) is double and torch.jit.freeze(double) is double
    assert torch.jit.wait(torch.jit.fork(double, 4)) == 8 and torch.jit.annotate(list[int], [1]) == [1]
    assert not torch.jit.is_tracing()
    with pytest.raises(RuntimeError, match="class"):
        torch.jit.interface(double)
    for call in (lambda: torch.jit.save(Layer(), "model.pt"), lambda: torch.jit.load("model.pt")):
        with pytest.raises(RuntimeError, match="state_dict"):
            call()
