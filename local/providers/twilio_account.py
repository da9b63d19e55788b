"""The account of the simulated Twilio: what its simulator lets in and signs with, and what `deploy` puts
into the stage's secret."""

ACCOUNT_SID = "AC" + "0123456789abcdef" * 2
AUTH_TOKEN = "local"  # noqa: S105 - of the simulator alone
API_KEY = "SK" + "fedcba9876543210" * 2
API_KEY_SECRET = "local-key"  # noqa: S105 - likewise

SECRET = {"account_sid": ACCOUNT_SID, "auth_token": AUTH_TOKEN}
LOGINS = {(ACCOUNT_SID, AUTH_TOKEN), (API_KEY, API_KEY_SECRET)}
