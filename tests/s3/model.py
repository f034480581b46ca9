"""The API of S3 as botocore has it, and the table of it that the server is built with.

    .venv/bin/python tests/s3/model.py > crates/serve/s3/src/model.rs
"""

import gzip
import json
import pathlib
import urllib.parse

import botocore

TABLE = pathlib.Path(__file__).parents[2] / "crates" / "serve" / "s3" / "src" / "model.rs"
HEAD = '''\
//! The names of the S3 API that select an operation, and the parameters beside them.
//!
//! Written by `.venv/bin/python tests/s3/model.py`, from the model that botocore ships;
//! `tests/s3/test_model.py` fails when another botocore has another model.

/// What a sub-resource is one of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    /// All buckets.
    Root,
    /// `/bucket`.
    Bucket,
    /// `/bucket/key`.
    Object,
}
use Resource::{Bucket, Object};

/// Method, resource, the name in the query, and the operation that it selects.
#[rustfmt::skip]
pub const SUBRESOURCES: &[(&str, Resource, &str, &str)] = &[
'''


def load():
    """Operations by name: method, resource, fixed query, and members by where they travel."""
    [path] = pathlib.Path(botocore.__file__).parent.glob("data/s3/*/service-2.json*")
    data = path.read_bytes()
    model = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    operations = {}
    for name, operation in model["operations"].items():
        http = operation["http"]
        path, _, query = http["requestUri"].partition("?")
        shape = model["shapes"].get(operation.get("input", {}).get("shape"), {"members": {}})
        members = {"querystring": {}, "header": {}, "headers": {}}
        for member, at in shape["members"].items():
            if at.get("location") in members:
                kind = model["shapes"][at["shape"]]
                members[at["location"]][at["locationName"]] = (member, kind)
        operations[name] = {
            "method": http["method"],
            "resource": {0: "Root", 1: "Bucket", 2: "Object"}[path.count("{")],
            "query": dict(urllib.parse.parse_qsl(query, keep_blank_values=True)),
            "required": set(shape.get("required", [])),
            **members,
        }
    return operations


def table():
    """The Rust source of the table."""
    operations = load()
    rows, parameters = set(), set()
    for name, operation in operations.items():
        for key, value in operation["query"].items():
            if value:
                parameters.add(key)
            else:
                rows.add((operation["method"], operation["resource"], key, name))
        parameters.update(operation["querystring"])
    text = HEAD
    for method, resource, key, name in sorted(rows):
        text += f'    ("{method}", {resource}, "{key}", "{name}"),\n'
    text += "];\n\n/// What else may be in a query, of whatever operation.\n#[rustfmt::skip]\n"
    text += "pub const PARAMETERS: &[&str] = &[\n"
    for key in sorted(parameters):
        text += f'    "{key}",\n'
    return text + "];\n"


if __name__ == "__main__":
    print(table(), end="")
