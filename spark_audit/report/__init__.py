"""The reports of an audit, all made from its result: for people, for programs, and for the terminal.

    result.json           everything, by report/result.schema.json
    report.html           one page without anything from elsewhere: page, hexdump, charts, text
    junit.xml             a test case for each control
    audit.sarif           a result for each finding, with file and line
    exceptions.parquet    every violation, written by Spark: exceptions

`figures`, `latency` and `evidence` are the sums behind them, on Spark.
"""

from spark_audit.report.files import check_report_folder, write_report
from spark_audit.report.page import html
from spark_audit.report.summary import print_summary

__all__ = ["check_report_folder", "html", "print_summary", "write_report"]
