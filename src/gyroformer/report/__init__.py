"""One HTML page to explore one run or to compare several, complete in itself; and runs in the formats of others."""

from gyroformer.report.export import FORMATS, export_run
from gyroformer.report.page import REPORT, read_runs, write_report, write_run_report

__all__ = ["FORMATS", "REPORT", "export_run", "read_runs", "write_report", "write_run_report"]
