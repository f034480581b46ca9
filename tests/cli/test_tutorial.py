"""docs/tutorial.md: every command works, and says what the page says."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def test_the_tutorial_can_be_followed():
    done = subprocess.run([sys.executable, os.path.join(ROOT, "scripts", "tutorial"), "--check"], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
