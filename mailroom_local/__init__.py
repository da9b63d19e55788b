"""AWS on one machine: emulator, deployment, stream pump, provider simulators, and the demo."""
