"""What a server tells under `/-/`, asked as a program would."""

import base64
import json
import re
import urllib.error
import urllib.request

import zonestore


def ask(server, path, keys=(zonestore.ACCESS_KEY, zonestore.SECRET_KEY), body=None, headers=()):
    """Status, headers and body of the answer; without keys if there are none."""
    request = urllib.request.Request(server.endpoint + path, data=body, headers=dict(headers))
    if keys:
        pair = base64.b64encode(":".join(keys).encode()).decode()
        request.add_header("Authorization", f"Basic {pair}")
    try:
        answer = urllib.request.urlopen(request, timeout=zonestore.TIMEOUT)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        return answer.status, answer.headers, answer.read()


def document(server):
    status, _, body = ask(server, "/-/status.json")
    assert status == 200, body
    return json.loads(body)


def order(server, **what):
    body = json.dumps(what).encode()
    status, _, answer = ask(server, "/-/cleaner", body=body, headers={"X-ZoneStore": "test"})
    assert status == 200, answer
    return json.loads(answer)


def metrics(server, keys=(zonestore.ACCESS_KEY, zonestore.SECRET_KEY)):
    """Values by name and labels, and types by name."""
    status, _, body = ask(server, "/-/metrics", keys)
    assert status == 200, body
    values, types = {}, {}
    for line in body.decode().splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            types[name] = kind
        elif not line.startswith("#"):
            name, labels, value = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line).groups()
            pairs = re.findall(r'(\w+)="([^"]*)"', labels or "")
            values[name, frozenset(pairs)] = float(value)
    return values, types
