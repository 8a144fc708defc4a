"""The constants of the MQI are those of IBM's packages."""

import importlib

from mq_adapters.ibm_mq import constants


def test_each_constant_is_the_packages_own(package):
    modules = [importlib.import_module(f"{package}.{name}") for name in ("CMQC", "CMQXC")]
    ours = {name: value for name, value in vars(constants).items() if name.startswith("MQ")}
    theirs = {name: getattr(module, name) for name in ours for module in modules if hasattr(module, name)}
    newer_than_pymqi = {"MQCNO_VERSION_7"} if package == "pymqi" else set()
    assert set(ours) - set(theirs) <= newer_than_pymqi
    assert {name: ours[name] for name in theirs} == theirs
    assert len(ours) > 60
