"""The metrics of a running gateway, scraped as Prometheus does it."""

import time
import urllib.request
from collections.abc import Callable

from prometheus_client.parser import text_string_to_metric_families

from tests.end_to_end.gateway_process import PATIENCE_S, Gateway

_POLL_S = 0.05


class Page:
    """One scrape: values by name and labels."""

    def __init__(self, text: str) -> None:
        families = list(text_string_to_metric_families(text))
        self.documented = {family.name: family.documentation for family in families}
        self.values = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in families
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float:
        """The value of one line; 0 where there is none."""
        return self.values.get((f"rfhbridge_{name}", tuple(sorted(labels.items()))), 0.0)


def scrape(gateway: Gateway) -> Page:
    """Asks the HTTP port, which stands in the log."""
    port = gateway.logged("http started")[-1]["port"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        return Page(answer.read().decode())


def scrape_until(gateway: Gateway, is_true: Callable[[Page], bool]) -> Page:
    """Scrapes until a page is as it should be: counts follow what they count by a moment."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_true(page := scrape(gateway)):
        assert time.monotonic() < deadline, f"the metrics never came to it: {page.values}"
        time.sleep(_POLL_S)
    return page
