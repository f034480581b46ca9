"""The package beside the versions of Python that it allows."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# As pyproject.toml says.
OLDEST = (3, 9)


@pytest.mark.parametrize("source", sorted((ROOT / "swift/zonestore_swift").glob("*.py")), ids=lambda path: path.name)
def test_the_oldest_python_reads_it(source):
    assert f'requires-python = ">={OLDEST[0]}.{OLDEST[1]}"' in (ROOT / "swift/pyproject.toml").read_text()
    tree = ast.parse(source.read_text(), feature_version=OLDEST)
    for node in ast.walk(tree):
        # Before 3.11, an index has no starred items outside parentheses; the parser lets them pass.
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
            starred = any(isinstance(item, ast.Starred) for item in node.slice.elts)
            assert not starred or ast.get_source_segment(source.read_text(), node.slice).startswith("("), f"line {node.lineno}"
