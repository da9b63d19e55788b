"""Fax, by SignalWire or Telnyx: one at a time to a number, resumed where it was left."""
