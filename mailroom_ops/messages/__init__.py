"""Commands about messages: send one, show its status, list failures, find messages, pause lanes."""
