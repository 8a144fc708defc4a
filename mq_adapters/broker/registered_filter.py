"""The Filter of a subscription: a content filter, or the selector of MQSUB behind a mark."""

from mq_adapters.broker.publication_content import PublicationContent
from mq_adapters.selection.conditions import accepts
from mq_adapters.selection.filters import parse_filter
from mq_adapters.selection.selectors import SELECTOR_MARK, parse_selector


def check_filter(text: str) -> None:
    """Raises FilterError for a malformed filter, UnavailableFilterError for one that cannot be evaluated here."""
    if text.startswith(SELECTOR_MARK):
        parse_selector(text.removeprefix(SELECTOR_MARK))
    else:
        parse_filter(text)


def passes(text: str, content: PublicationContent) -> bool:
    """Whether the filter lets a publication pass. ContentError if the broker cannot tell."""
    if text.startswith(SELECTOR_MARK):
        return accepts(parse_selector(text.removeprefix(SELECTOR_MARK)), content.of_message)
    return accepts(parse_filter(text), content)
