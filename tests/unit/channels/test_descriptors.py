"""Every channel's descriptor is whole. A project runs the same tests on channels of its own."""

from mailroom_ops.testing import (
    test_the_example_of_a_channel_is_valid,
    test_the_functions_that_a_channel_names_exist,
    test_the_schema_of_a_channel_rejects_an_item_without_attributes,
    test_the_texts_about_a_channel_for_people_are_complete,
)

__all__ = [
    "test_the_example_of_a_channel_is_valid",
    "test_the_functions_that_a_channel_names_exist",
    "test_the_schema_of_a_channel_rejects_an_item_without_attributes",
    "test_the_texts_about_a_channel_for_people_are_complete",
]
