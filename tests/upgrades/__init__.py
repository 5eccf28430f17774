"""Upgrades and downgrades: two versions of the packages that find each other's caches answer as with empty ones."""
