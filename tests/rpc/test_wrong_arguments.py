"""Wrong types and values of arguments: each error names the argument and what was given."""

import math

import pytest
from telegrad import checkpoint, nn, optim, rpc
from telegrad.autograd_dist import context, draw
from telegrad.checkpoint import Checkpointer
from telegrad.collective import ElasticTraining
from telegrad.data import ElasticSampler
from telegrad.futures import collect_all, wait_all
from telegrad.launcher import JobSpec, RestartRules
from telegrad.pipelining import Pipeline
from telegrad.rref import RemoteModule

HUGE = 10**400


def fails(words, function, *args, **kwargs):
    with pytest.raises((TypeError, ValueError), match=words):
        function(*args, **kwargs)


def drawn(path):
    with context() as context_id:
        draw(context_id, path)


@pytest.mark.parametrize("timeout", ["a", math.nan, HUGE, [1], object()])
def test_a_wrong_time_out_of_a_wait(timeout):
    for future in (done := collect_all([])), collect_all([done, done]):
        fails("timeout must be a number of seconds, None for no limit; you gave", future.wait, timeout)
    fails("timeout must be a number", wait_all, [done, done], timeout)


def test_wrong_futures():
    fails("futures must be a list of futures; you gave None", collect_all, None)
    fails("futures must be a list of futures; you gave 3", wait_all, 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rpc_timeout": HUGE}, "rpc_timeout must be a number of seconds"),
        ({"lanes": 5}, r"lanes must be a list of names, as \['unix', 'grpc'\]; you gave 5"),
        ({"host": 5}, "host must be a name or an address; you gave 5"),
        ({"listen_host": b"x"}, "listen_host must be a name or an address; you gave b'x'"),
        ({"device_maps": "cuda"}, "device_maps is, by name of a worker, a map of devices; you gave 'cuda'"),
    ],
)
def test_wrong_options(options, words):
    fails(words, rpc.GrpcRpcBackendOptions, **options)


def test_wrong_files():
    fails("key of TlsFiles must be the path of a PEM file; you gave 5", rpc.TlsFiles, "a", 5, "c")
    for read in (Checkpointer, checkpoint.describe, checkpoint.summaries, checkpoint.verify):
        fails(r"folder must be a path, or an address like s3://bucket/runs; you gave 3", read, 3)


def test_wrong_arguments_of_calls(workers):
    fails("reduce= is 'sum', 'mean' or 'cat'; you gave", rpc.mesh().call, abs, (1,), reduce=["sum"])
    fails("timeout must be a number of seconds, 0 for none; you gave 1000", rpc.rpc_sync, "b", abs, (1,), timeout=HUGE)
    fails("progress must be a function of two numbers; you gave 5", rpc.map, ["b"], abs, [1], progress=5)
    fails("args must be a tuple; for one argument write .*; you gave 2", RemoteModule, "b", nn.Linear, 2)
    fails("path must be that of a file to write; you gave 1", drawn, 1)
    fails("stages must be a list of RemoteModules, .*; you gave 3", Pipeline, 3)
    stages = [rpc.remote("b", nn.Linear, (1, 1))]
    fails("timeout must be a number of seconds", Pipeline, stages, timeout="a")


def test_items_are_asked_for_in_growing_numbers(workers):
    assert list(rpc.stream("b", range, (200,), ahead=HUGE)) == [*range(200)]


def test_wrong_arguments_of_checkpoints(tmp_path, workers):
    fails("own must be a list of names of parts; you gave 3", Checkpointer, tmp_path, own=3)
    with Checkpointer(tmp_path) as checkpoints:
        fails("metric must be a number; you gave 'good'", checkpoints.save, 1, metric="good")


def test_wrong_arguments_of_elastic_trainings(workers):
    fails("dataset must be something with a length; you gave None", ElasticSampler, None, 2)
    model = nn.Linear(1, 1)
    made = (model, optim.SGD(model.parameters(), lr=0.1), ElasticSampler([1, 2], 2))
    fails("parts must be a dictionary of parts by name; you gave 3", ElasticTraining, *made, parts=3)
    fails("role must be the name of a role; you gave 3", ElasticTraining, *made, role=3)
    fails(r"name must be a text; you gave \[\]", ElasticTraining, *made, name=[])


def test_wrong_arguments_of_jobs():
    fails("program must be the path of a script, .*; you gave None", JobSpec, None)
    fails("interpreter must be the path of a python; you gave 3", JobSpec, __file__, interpreter=3)
    fails("workers must be a tuple of names; you gave 3", JobSpec, __file__, workers=3)
    fails("1 cannot be a worker's name", JobSpec, __file__, workers=(1,))
    fails("most must be a whole number; you gave 'a'", RestartRules, most="a")
