"""Everything that can be set, each option declared once; no torch, so that ``--help`` answers at once."""

from gyroformer.options.check import check_choice
from gyroformer.options.constructor import FromOptions, takes
from gyroformer.options.declare import Option, Options, option, options_of
from gyroformer.options.plain import as_plain, from_plain, merged

__all__ = [
    "FromOptions",
    "Option",
    "Options",
    "as_plain",
    "check_choice",
    "from_plain",
    "merged",
    "option",
    "options_of",
    "takes",
]
