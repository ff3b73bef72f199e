"""A capture without what is not to be shared.

First the values are found that the rules name (`discover`); then the places of these values, in
whatever encoding (`editor`); then every record is written with its edits done (`rewrite`), lengths and offsets made
true again. What was written is read, too, and if anything of a value is in it (`remains`), it is thrown away.

    records ─▶ walk ─▶ documents ─▶ discover ─▶ values, places
                          └───────▶ editor ───▶ edits of each channel ─▶ rewrite ─▶ a file ─▶ remains
"""

from mcpsniff.export.redact.listing import places
from mcpsniff.export.redact.rules import Names, Rules, make_rules
from mcpsniff.export.redact.run import RemainsError, Report, redact

__all__ = ["Names", "RemainsError", "Report", "Rules", "make_rules", "places", "redact"]
