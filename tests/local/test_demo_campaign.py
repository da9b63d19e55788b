"""Each mail of the demo's campaign must have its link for opting out."""

from lab.demo.killed_campaign import has_link, link_of

LINK = "http://127.0.0.1:1/api/unsubscribe/t"
BOTH = {"List-Unsubscribe": f"<{LINK}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}


def test_the_demo_finds_a_one_click_unsubscribe_link_only_with_brackets_and_the_post_header() -> None:
    right = {"content": {"headers": BOTH}}
    bare = {"content": {"headers": BOTH | {"List-Unsubscribe": LINK}}}
    assert (link_of(right), link_of(bare)) == (LINK, "")
    assert has_link(right)
    assert not has_link(bare)
    assert not has_link({"content": {"headers": BOTH | {"List-Unsubscribe-Post": "No"}}})
