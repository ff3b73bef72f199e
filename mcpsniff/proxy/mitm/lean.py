"""mitmproxy without the addons that nobody asked for: its package of addons loads all of them, and flask with them.

That is a third of the time that the engine takes to load (1.0 s of a processor, 0.7 s without).
"""

import importlib.util
import sys
from typing import Any, Final

PACKAGE: Final = "mitmproxy.addons"


def load_named_addons_alone() -> None:
    """Have imports of single addons load these alone. The package's own names load the whole of it, as ever.

    Nothing is done where it is loaded already, as in mitmproxy's own programs. Raises ModuleNotFoundError without
    mitmproxy.
    """
    if PACKAGE in sys.modules:
        return
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.loader is None:
        return
    loader, package = spec.loader, importlib.util.module_from_spec(spec)

    def own_name(name: str) -> Any:
        if name.startswith("__") or importlib.util.find_spec(f"{PACKAGE}.{name}") is not None:
            raise AttributeError(name)  # a module of its own, which the import that asks will load
        del package.__dict__["__getattr__"]
        loader.exec_module(package)
        return getattr(package, name)

    package.__dict__["__getattr__"] = own_name  # PEP 562
    sys.modules[PACKAGE] = package
    setattr(sys.modules["mitmproxy"], PACKAGE.rpartition(".")[2], package)
