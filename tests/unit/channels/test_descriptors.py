"""Every channel's descriptor is whole. A project runs the same tests on channels of its own."""

from mailroom_ops.testing.test_channels import (
    test_a_channel_has_texts_about_its_messages_its_providers_and_the_status_sent,
    test_the_checks_and_the_simulator_that_a_channel_names_can_be_imported,
    test_the_example_of_a_channel_is_valid_by_the_contract_and_the_schema_of_the_channel,
    test_the_schema_of_a_channel_refuses_an_item_without_content,
)

__all__ = [
    "test_a_channel_has_texts_about_its_messages_its_providers_and_the_status_sent",
    "test_the_checks_and_the_simulator_that_a_channel_names_can_be_imported",
    "test_the_example_of_a_channel_is_valid_by_the_contract_and_the_schema_of_the_channel",
    "test_the_schema_of_a_channel_refuses_an_item_without_content",
]
