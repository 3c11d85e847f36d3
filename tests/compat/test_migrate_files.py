"""Files that ``telegrad migrate`` reads: every byte but imports stays, and what cannot be read is told with its name."""

import pytest
from telegrad.compat.migrate import migrate, migrate_file
from telegrad.launcher.cli import app
from typer.testing import CliRunner

LINE_ENDS = [
    b"import torch\r\nx = 1\r\n",
    b"import torch\rx = 1\r",
    b"import torch\r\nx = 1\ry = 2\n\r\n\r",
    b"import torch\nx = 1",
    b"\xef\xbb\xbfimport torch\nx = '''a\r\nb\rc'''\n\x0c\n",
    "# coding: latin-1\r\nimport torch\r\nx = 'é'\r\n".encode("latin-1"),
]


@pytest.mark.parametrize("text", LINE_ENDS)
def test_every_other_byte_stays(tmp_path, text):
    script = tmp_path / "train.py"
    script.write_bytes(text)
    assert migrate_file(script) == []
    assert script.read_bytes() == text.replace(b"import torch", b"import telegrad.compat.torch as torch")


DEEP = {
    "lists": "x = " + 150 * "[" + 150 * "]",
    "terms": "x = " + " + ".join(300 * ["1"]),
    "texts": "x = " + 300 * "'a' ",
    "elif": "if a: pass\n" + 200 * "elif b: pass\n",
}


@pytest.mark.parametrize("kind", DEEP)
def test_deep_expressions_are_read(kind):
    assert migrate(f"import torch\n{DEEP[kind]}\n").source.startswith("import telegrad")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = " + 5000 * "(" + "1" + 5000 * ")", "line 1: too many nested parentheses"),
        ("x = " + 5000 * "-" + "1", "too deep"),
        ("x = " + 20_000 * "lambda: " + "1", "too deep"),
        ("import os\nx = 1 + " + 3000 * "1 + " + "1", "line 2: this is nested too deep"),
    ],
    ids=["parentheses", "signs", "lambdas", "terms"],
)
def test_expressions_that_are_too_deep_are_refused_and_other_files_go_on(tmp_path, text, words):
    deep, other = tmp_path / "deep.py", tmp_path / "other.py"
    deep.write_text(f"{text}\n")
    other.write_text("import torch\n")
    done = CliRunner().invoke(app, ["migrate", str(deep), str(other)])
    assert done.exit_code == 2 and str(deep) in done.output and words in done.output
    assert deep.read_text() == f"{text}\n" and other.read_text().startswith("import telegrad")


@pytest.mark.parametrize("text", [b"x = '\xff'\n", b"# coding: nothing\n"])
def test_texts_of_an_unknown_encoding_are_refused(tmp_path, text):
    script = tmp_path / "train.py"
    script.write_bytes(text)
    with pytest.raises(ValueError, match=r"train\.py: .*encoding"):
        migrate_file(script)
