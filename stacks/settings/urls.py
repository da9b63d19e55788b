"""The URLs that settings may hold. Credentials go there: plain HTTP is for the simulators alone."""

PROVIDERS_AT_SYNTH = "providers"
"""A base URL that is known only when the app runs: `-c providers=URL`."""
ORIGIN = r"https://[A-Za-z0-9.-]+(:[0-9]+)?"
BASE_URL = rf"^({ORIGIN}(/[A-Za-z0-9._~-]+)*|{PROVIDERS_AT_SYNTH})$"
