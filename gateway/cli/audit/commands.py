"""`rfhbridge audit`: the group of its commands."""

import typer

from gateway.cli.audit.explain import explain
from gateway.cli.audit.fetch import fetch
from gateway.cli.audit.key import key
from gateway.cli.audit.pack import pack
from gateway.cli.audit.prove import prove
from gateway.cli.audit.show import show
from gateway.cli.audit.spark_commands import bulk, command_of, ingest, run, stream
from gateway.cli.audit.verify import verify
from gateway.cli.examples import epilog

audit = typer.Typer(
    help="Prove by the trail what the gateway did. Exit code 0: clean; 1: violations; 2: not evaluable; 3: wrong use.",
    epilog=epilog("rfhbridge audit run --data var --out report", "rfhbridge audit verify --data var"),
    rich_markup_mode=None,
)

audit.command(
    epilog=epilog(
        "rfhbridge audit run --data var --out report",
        "rfhbridge audit run --data east --data west --from 2026-11-01 --until 2026-12-01 --out report",
        "rfhbridge audit run --data var --sign auditor.pem --since-state report/state.zst --out report",
        "rfhbridge audit run --parquet lines --policy policy.toml --master spark://host:7077 --out report",
    )
)(command_of(run))
audit.command(epilog=epilog("rfhbridge audit ingest --data var --to lines"))(command_of(ingest))
audit.command(epilog=epilog("rfhbridge audit stream --data var --out findings --checkpoint stream"))(command_of(stream))
audit.command(
    epilog=epilog(
        "rfhbridge audit bulk --in captured --out report",
        "rfhbridge audit bulk --in captured --converted migrated --to mqrfh2 --out report --json",
    )
)(command_of(bulk))
audit.command(
    epilog=epilog(
        "rfhbridge audit verify --data var",
        "rfhbridge audit verify --public-key gateway.pub --digests copies",
        "rfhbridge audit verify --keep-at-least 365d --not-older-than 1h",
    )
)(verify)
audit.command(epilog=epilog("rfhbridge audit prove 524648420102030405060708090a0b0c0000000000000001 --out proof.json"))(
    prove
)
audit.command(epilog=epilog("rfhbridge audit pack --data var --out evidence.tar.gz"))(pack)
audit.command(
    epilog=epilog(
        "rfhbridge audit explain 524648420102030405060708090a0b0c0000000000000001 --data var",
        "rfhbridge audit explain --client panel --topic 'plant/#' --since 2026-11-20T10:00Z",
    )
)(explain)
audit.command(
    epilog=epilog(
        "rfhbridge audit show --segment 12 --kind refused",
        "rfhbridge audit show --client panel --since 2026-11-20T10:00Z | jq .topic",
    )
)(show)
audit.command(epilog=epilog("rfhbridge audit fetch s3://plant-digests/plant-7 copies"))(fetch)
audit.add_typer(key, name="key")
