"""What checks and keeps this repository; run from its root: python -m scripts.licences."""
