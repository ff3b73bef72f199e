"""What is loaded of mitmproxy, in an interpreter of its own."""

import subprocess
import sys

LEAN = """
import sys
import mcpsniff.proxy.mitm.forward
assert "mitmproxy.addons.proxyserver" in sys.modules
for name in ("flask", "ldap3", "mitmproxy.addons.onboarding", "mitmproxy.addons.view"):
    assert name not in sys.modules, name
"""
WHOLE = """
import sys
import mcpsniff.proxy.mitm
from mitmproxy import addons
from mitmproxy.addons import proxyserver, view
assert "flask" not in sys.modules
assert any(isinstance(addon, proxyserver.Proxyserver) for addon in addons.default_addons())
assert "flask" in sys.modules and addons.view is view
assert not hasattr(addons, "no_such_addon")
"""
THEIRS = """
import sys
import mitmproxy.addons as theirs
import mcpsniff.proxy.mitm
assert sys.modules["mitmproxy.addons"] is theirs
"""


def test_only_named_addons_are_loaded_and_the_others_when_somebody_asks() -> None:
    for program in (LEAN, WHOLE, THEIRS):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
