"""The stand-in's queue manager and a gateway whose target it is; each binding with one of the two headers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.end_to_end.ibm_mq.central import Central
from tests.end_to_end.ibm_mq.target_gateway import Table, TargetGateway
from tests.end_to_end.paho_client import PahoClient
from tests.ibm_mq_stand_in.process import Binding, environment, why_unavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to IBM MQ: the package that is used, and the header that the target's broker takes."""

    binding: Binding
    header: str

    def target(self, **more: object) -> Table:
        return {"binding": self.binding, "header": self.header, **more}


WAYS = (Way(binding="ibmmq", header="mqrfh2"), Way(binding="pymqi", header="mqrfh"))

#: Connection names of the two queue managers of a test with a standby.
ONE, TWO = "one.example(1414)", "two.example(1414)"

NewGateway = Callable[..., TargetGateway]
NewCentral = Callable[..., Central]
NewClient = Callable[..., PahoClient]


#: Most tests here start a dozen processes, one after the other: a minute where two cores have other work.
LIMIT_S = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here needs the stand-in, and time; a test's own limit counts before this one."""
    reason = why_unavailable()
    here = str(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.timeout(LIMIT_S))
            if reason:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(params=WAYS, ids=lambda way: f"{way.binding}-{way.header}")
def way(request: pytest.FixtureRequest) -> Way:
    """ibmmq with MQRFH2, then pymqi with MQRFH."""
    found: Way = request.param
    return found


@pytest.fixture
def new_central(tmp_path: Path) -> Iterator[NewCentral]:
    """Starts queue managers; they are killed at the end of the test."""
    with ExitStack() as stack:

        def start(name: str = "CENTRAL", *, streams: tuple[str, ...] = ()) -> Central:
            return stack.enter_context(Central(tmp_path / name.lower(), name=name, streams=streams))

        yield start


@pytest.fixture
def central(new_central: NewCentral) -> Central:
    return new_central()


@pytest.fixture
def new_target_gateway(tmp_path: Path, central: Central) -> Iterator[NewGateway]:
    """Makes gateways that are not started yet, and sets the target up for each; what still runs is killed.

    With a `standby` the target has two connection names: first the central queue manager's, then that one's.
    """
    made: list[TargetGateway] = []

    def make(
        way: Way,
        *,
        folder: str = "gateway",
        standby: Central | None = None,
        routes: tuple[Table, ...] = ({"topics": ["#"]},),
        settings: Table | None = None,
        **target: object,
    ) -> TargetGateway:
        sockets = str(central.socket)
        if standby is not None:
            sockets = f"{ONE}={central.socket};{TWO}={standby.socket}"
            target = {"connections": [ONE, TWO], **target}
        gateway = TargetGateway(
            tmp_path / folder,
            environment(way.binding, sockets),
            target=way.target(**target),
            routes=routes,
            settings=settings,
        )
        made.append(gateway)
        for each in filter(None, (central, standby)):
            each.set_up(gateway.set_up_mqsc())
        return gateway

    yield make
    for gateway in made:
        gateway.clean_up()


@pytest.fixture
def new_client() -> Iterator[NewClient]:
    """Makes paho clients; they are closed at the end of the test."""
    made: list[PahoClient] = []

    def make(name: str, *, clean_session: bool = True) -> PahoClient:
        made.append(PahoClient(name, clean_session=clean_session))
        return made[-1]

    yield make
    for client in made:
        client.close()
