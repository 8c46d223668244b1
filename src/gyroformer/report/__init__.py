"""One HTML page that shows one run or compares several, complete in itself."""

from gyroformer.report.page import REPORT, write_report, write_run_report

__all__ = ["REPORT", "write_report", "write_run_report"]
