"""Where the app finds what it deploys."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAMBDAS = ROOT / "lambdas"
TEMPLATES = ROOT / "templates"
CAMPAIGNS = ROOT / "campaigns"
CAMPAIGN_FILE = "campaign.toml"
"""The settings of a campaign, in its folder."""
BUNDLES = ROOT / ".local" / "bundles"
ASSEMBLIES = ROOT / ".local" / "assemblies"
