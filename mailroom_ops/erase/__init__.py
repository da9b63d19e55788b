"""Erasing a person: a mail address, a number or a device, out of all that a stage keeps."""
