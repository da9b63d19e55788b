"""Resources, permissions and variables that the descriptors of providers name: a module for each provider."""
