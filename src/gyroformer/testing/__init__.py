"""Tools to test code that lives on curved spaces; used by this project's own tests and shipped to users.

They are themselves tested to fail on wrong code. The 60-digit references need mpmath (``gyroformer[test]``).
"""

from gyroformer.testing.laws import (
    assert_isometry,
    assert_matches_reference,
    assert_scaling_law,
    assert_smooth_through_zero,
)
from gyroformer.testing.samples import random_points, random_rotation

__all__ = [
    "assert_isometry",
    "assert_matches_reference",
    "assert_scaling_law",
    "assert_smooth_through_zero",
    "random_points",
    "random_rotation",
]
