"""AWS on one machine: emulator, deployment, stream pump, and simulators of providers."""
