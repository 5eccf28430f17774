"""oplet on processors that this machine is not, emulated or restricted: recorded cases and units (see scripts/emulated)."""
