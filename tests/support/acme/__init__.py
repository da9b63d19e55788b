"""A third provider of text messages: the package `provider`, a row in `MODULES`, and a module for each higher
layer."""
