"""What counts as one address: RFC 4291 section 2.5.5.2 for IPv4 in IPv6; a /64 is one network (section 2.5.4)."""

import pytest

from gateway.limits.addresses import network_of, network_of_peer, prefix_of


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "c0000207"),
        ("::ffff:192.0.2.7", "c0000207"),
        ("::ffff:c000:0207", "c0000207"),
        ("2001:db8:1:2:3:4:5:6", "20010db800010002"),
        ("2001:db8:1:2::1", "20010db800010002"),
        ("fe80::1%eth0", "fe80000000000000"),
        ("::1", "0000000000000000"),
        ("", ""),
        ("unknown", ""),
        ("192.0.2.256", ""),
    ],
)
def test_an_address_counts_as_itself_or_as_its_network(address: str, network: str) -> None:
    assert network_of(address).hex() == network


@pytest.mark.parametrize(
    ("peer", "network"),
    [("192.0.2.7:50000", "c0000207"), ("[2001:db8:1:2::1]:50000", "20010db800010002"), ("unknown", ""), ("", "")],
)
def test_a_peer_counts_as_its_address(peer: str, network: str) -> None:
    assert network_of_peer(peer).hex() == network


@pytest.mark.parametrize(
    ("network", "prefix"),
    [("c0000207", "c00002"), ("20010db800010002", "20010db80001"), ("", "")],
)
def test_a_prefix_is_the_24_of_ipv4_and_the_48_of_ipv6(network: str, prefix: str) -> None:
    assert prefix_of(bytes.fromhex(network)).hex() == prefix
