"""AWS on one machine: emulator, deployment, stream pump, and provider simulators."""
