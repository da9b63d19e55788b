"""Commands that render templates with their examples, and publish versions of templates."""
