"""Only the public DataFrame API: then one code runs here, on a cluster, under spark-submit and behind Spark Connect."""

import ast
from pathlib import Path

import pytest

import spark_audit

#: What Spark Connect has not: the context, RDDs, and everything of Java.
FORBIDDEN = {"sparkContext", "SparkContext", "SQLContext", "HiveContext", "rdd", "toJavaRDD", "parallelize"}
FORBIDDEN |= {"_jvm", "_jsc", "_jdf", "_jc", "_jsparkSession", "_gateway", "_sc", "foreachPartition", "checkpointed"}
#: It starts a Java here to let it end: no audit uses it.
ONLY_HERE = "java_classes.py"
MODULES = [path for path in sorted(Path(spark_audit.__file__).parent.rglob("*.py")) if path.name != ONLY_HERE]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_nothing_but_dataframes_is_used(path: Path) -> None:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name):
                names.add(name)
            case ast.ImportFrom(module=module, names=imported):
                names |= {part for part in (module or "").split(".") if part in ("py4j", "rdd")}
                names |= {alias.name for alias in imported}
                names -= {"py4j"} if {alias.name for alias in imported} == {"Py4JError"} else set()
            case ast.Import(names=imported):
                names |= {"py4j" for alias in imported if alias.name.startswith("py4j")}
    assert not names & (FORBIDDEN | {"py4j"})


def test_sessions_are_made_in_one_module() -> None:
    makers = [path.name for path in MODULES if ".getOrCreate(" in path.read_text()]
    assert makers == ["spark_session.py"]
