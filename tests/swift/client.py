"""A user of a Swift on this machine."""

import urllib.error
import urllib.request


class Client:
    def __init__(self, port):
        answer = self._request("GET", f"http://127.0.0.1:{port}/auth/v1.0", {"X-Auth-User": "test:tester", "X-Auth-Key": "testing"})
        self.url, self.headers = answer.headers["X-Storage-Url"], {"X-Auth-Token": answer.headers["X-Auth-Token"]}

    @staticmethod
    def _request(method, url, headers, body=None):
        return urllib.request.urlopen(urllib.request.Request(url, body, headers, method=method), timeout=600)

    def __call__(self, method, path, body=None, **headers):
        named = {key.replace("_", "-"): value for key, value in headers.items() if value is not None}
        try:
            answer = self._request(method, f"{self.url}/{path}", {**self.headers, **named}, body)
            return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
