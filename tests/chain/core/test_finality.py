"""What is safe and final on a network."""

from __future__ import annotations

import pytest

from chain.core.blocks.final_heights import Heights, depth_of, heights


@pytest.mark.parametrize(
    ("network_id", "depth"), [(1, 65), (8453, 30), (137, 200), (42161, 240), (31337, 64)]
)
def test_networks_have_their_usual_depths(network_id: int, depth: int) -> None:
    assert depth_of(network_id) == depth
    assert heights(network_id, 1000, None, None).finalized == 1000 - depth


def test_a_node_s_tags_go_before_the_usual_depth() -> None:
    assert heights(1, 1000, 990, 980) == Heights(990, 980)
    assert heights(1, 1000, None, 980) == Heights(980, 980)


def test_a_deployment_s_own_depth_goes_before_the_tags() -> None:
    assert heights(1, 1000, 990, 980, depth=10) == Heights(995, 990)
    assert heights(1, 1000, 990, 980, depth=0) == Heights(1000, 1000)


def test_nothing_lies_above_the_head_or_below_the_beginning() -> None:
    assert heights(1, 100, 500, 400) == Heights(100, 100)
    assert heights(1, 100, 50, 80) == Heights(80, 80)
    assert heights(1, 10, None, None) == Heights(0, 0)
