"""Every channel's descriptor is whole. A project runs the same tests on channels of its own."""

from mailroom_ops.testing.test_channels import (
    test_its_example_is_an_item_that_its_contract_and_its_schema_take,
    test_its_schema_refuses_an_item_that_says_nothing,
    test_people_have_words_for_it,
    test_what_it_names_is_there,
)

__all__ = [
    "test_its_example_is_an_item_that_its_contract_and_its_schema_take",
    "test_its_schema_refuses_an_item_that_says_nothing",
    "test_people_have_words_for_it",
    "test_what_it_names_is_there",
]
