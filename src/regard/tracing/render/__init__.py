"""How a derivation is shown. Each renderer reads one and computes nothing."""
